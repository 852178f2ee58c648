# Language level, warnings, sanitizers and ccache: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# No contraction: a*b+c must round the same in every translation unit, else two processes of one job
# may disagree in the last bit (docs/architecture.md, "What is promised").
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -ffp-contract=off
                    -fno-omit-frame-pointer)
# GCC 12 warns about std::variant's own members after inlining; UBSan, ASan and clang watch over the real thing.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)
endif()
if(OUTRIGGER_SANITIZE)
  add_compile_options(-fsanitize=${OUTRIGGER_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OUTRIGGER_SANITIZE})
endif()
if(OUTRIGGER_BUILD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
