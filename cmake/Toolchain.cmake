# Language level, warnings, sanitizers and ccache: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Libraries are static and compiled as the compiler does unasked, for executables. With CMAKE_POSITION_INDEPENDENT_CODE
# GCC would inline no function that another library might put its own in the place of (docs/decisions/0063).

# Neither the build folder's name nor the checkout's is part of what ccache compares, so that one build folder or
# checkout profits from another.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_NOHASHDIR=1 "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}")
  if(OUTRIGGER_PRECOMPILE)
    # Without the first, ccache passes such compiles by. With the second it asks the compiler what a source includes, not
    # the preprocessor before: a build from nothing does not preprocess everything twice. That finds nothing of another
    # checkout's, but neither do precompiled headers, whose paths are absolute.
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# No contraction: a*b+c must round the same in every translation unit, else two processes of one job
# may disagree in the last bit (docs/architecture.md, "What is promised").
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
                    -ffp-contract=off -fno-omit-frame-pointer)
# Several sources in one translation unit: a build from nothing costs a fourth. What this warns of is only meant for
# headers, and there sources are included as they are.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-subobject-linkage)
endif()
# Places in messages and debug information are relative to the tree, not to the machine that built them.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(OUTRIGGER_PRECOMPILE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # so that ccache finds equal ones equal
  find_program(LLD_PROGRAM ld.lld)
  if(LLD_PROGRAM)
    add_link_options(-fuse-ld=lld)  # a fourth of the usual linker's time, for each of many tests
  endif()
endif()
# GCC 12 warns about std::variant's own members after inlining; UBSan, ASan and clang watch over the real thing.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)
endif()
if(OUTRIGGER_SANITIZE)
  add_compile_options(-fsanitize=${OUTRIGGER_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OUTRIGGER_SANITIZE})
  # For code that no time is spent in, tests above all. Unoptimised it compiles in two thirds of the time, and half of what
  # is left are checks before every use of a pointer: for null, which AddressSanitizer stops at too, and for the
  # alignment and the type of what it points to, which matters where bytes are read as something else.
  set(OUTRIGGER_COLD_OPTIONS -O0 -fno-sanitize=null,alignment,vptr)
elseif(OUTRIGGER_PRECOMPILE)
  set(OUTRIGGER_COLD_OPTIONS -O0)
endif()
if(OUTRIGGER_BUILD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
