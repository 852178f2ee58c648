# Headers that most sources include, parsed once for all of them where OUTRIGGER_PRECOMPILE is on. It changes how long a
# build takes, not what is built: every source still includes what it uses, and the other builds hold it to that.
if(OUTRIGGER_PRECOMPILE)
  set(precompiled_headers
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <csignal> <cstdint> <cstdlib> <cstring>
    <deque> <filesystem> <fstream> <functional> <iostream> <limits> <map> <memory> <mutex> <numeric> <optional> <random>
    <set> <span> <sstream> <stop_token> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
    <nlohmann/json.hpp> <spdlog/fmt/fmt.h>)
  # One for each way of compiling: such headers are good for sources with the same options only.
  foreach(kind "" _cold _tests)
    set(name outrigger_precompiled${kind})
    add_library(${name} OBJECT "${PROJECT_SOURCE_DIR}/cmake/precompiled.cc")
    target_link_libraries(${name} PRIVATE spdlog::spdlog)
    target_precompile_headers(${name} PRIVATE ${precompiled_headers})
    if(kind STREQUAL "_tests")
      target_link_libraries(${name} PRIVATE GTest::gmock)
      target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    if(kind) # what is hot makes little of JSON
      target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.h")
      target_compile_options(${name} PRIVATE ${OUTRIGGER_COLD_OPTIONS})
    endif()
  endforeach()
endif()

# Lets a target use those of `from`. Not for targets and sources that are optimised in a way of their own.
function(outrigger_precompile target from)
  if(OUTRIGGER_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# outrigger_library(name [COLD | COOL] SOURCES a.cc … [USES folder …] [PRIVATE third-party …])
#   A folder's library. USES are our own folders and are public; third-party libraries stay private. COLD: no time is
#   spent in it, so builds for tests compile it fast (OUTRIGGER_COLD_OPTIONS). COOL: unit tests spend none in it, while
#   trainings and benches do, so it is cold where unit tests are all that runs.
function(outrigger_library name)
  cmake_parse_arguments(arg "COLD;COOL" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(outrigger_${name} STATIC ${arg_SOURCES})
  add_library(outrigger::${name} ALIAS outrigger_${name})
  target_include_directories(outrigger_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  list(TRANSFORM arg_USES PREPEND outrigger::)
  target_link_libraries(outrigger_${name} PUBLIC ${arg_USES} Threads::Threads PRIVATE ${arg_PRIVATE})
  if(arg_COLD OR (arg_COOL AND NOT OUTRIGGER_SANITIZE))
    target_compile_options(outrigger_${name} PRIVATE ${OUTRIGGER_COLD_OPTIONS})
    outrigger_precompile(outrigger_${name} outrigger_precompiled_cold)
  else()
    outrigger_precompile(outrigger_${name} outrigger_precompiled)
  endif()
endfunction()

# outrigger_program(name SOURCES main.cc USES folder …)
#   A main() over the libraries that do the work.
function(outrigger_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  list(TRANSFORM arg_USES PREPEND outrigger::)
  target_link_libraries(${name} PRIVATE ${arg_USES} ${arg_PRIVATE})
  target_compile_options(${name} PRIVATE ${OUTRIGGER_COLD_OPTIONS})
  outrigger_precompile(${name} outrigger_precompiled_cold)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# The folder a test or fuzz directory mirrors: tests/unit/nn/cpu belongs to nn.
function(outrigger_mirrored_folder variable)
  file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" ";" parts "${path}/.")
  list(GET parts 1 folder)
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

# outrigger_test(name SOURCES a_test.cc … USES folder … [PRIVATE third-party …] [LABELS l …] [TIMEOUT seconds]
#                [COST seconds])
#   One executable, one CTest entry. Labels: unit (default), integration, cluster, gpu. A test of tests/unit/<folder>
#   carries the folder's name as a label too, and is built by the targets tests_unit and tests_<folder>. Sources see
#   OUTRIGGER_SOURCE_DIR, those of other tests OUTRIGGER_BINARY_DIR as well. Those of a COST, about how long they take, start
#   first: what takes longest, above all what mostly waits, is not to be what is left at the end.
function(outrigger_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "SOURCES;USES;PRIVATE;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  add_executable(${name} ${arg_SOURCES})
  list(TRANSFORM arg_USES PREPEND outrigger::)
  target_link_libraries(${name} PRIVATE ${arg_USES} ${arg_PRIVATE} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE OUTRIGGER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${OUTRIGGER_COLD_OPTIONS})  # what a test calls is optimised
  outrigger_precompile(${name} outrigger_precompiled_tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT "unit" IN_LIST arg_LABELS)
    target_compile_definitions(${name} PRIVATE OUTRIGGER_BINARY_DIR="${CMAKE_BINARY_DIR}")
  else()
    outrigger_mirrored_folder(folder)
    list(APPEND arg_LABELS "${folder}")
    foreach(group tests_unit tests_${folder})
      if(NOT TARGET ${group})
        add_custom_target(${group})
      endif()
      add_dependencies(${group} ${name})
    endforeach()
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST "${arg_COST}")
endfunction()

# outrigger_fuzz(name SOURCES a_fuzz.cc USES folder … [PRIVATE third-party …] CORPUS directory)
#   Sources define LLVMFuzzerTestOneInput. With OUTRIGGER_BUILD_FUZZ it is a libFuzzer program in <build>/fuzz (what
#   make fuzz runs); else a CTest entry, labelled fuzz, that feeds every file of the corpus to it under any compiler.
function(outrigger_fuzz name)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;USES;PRIVATE" ${ARGN})
  list(TRANSFORM arg_USES PREPEND outrigger::)
  get_filename_component(corpus "${arg_CORPUS}" ABSOLUTE)
  if(OUTRIGGER_BUILD_FUZZ)
    add_executable(${name} ${arg_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    file(CREATE_LINK "${corpus}" "${CMAKE_BINARY_DIR}/fuzz/${name}.seeds" SYMBOLIC)
  else()
    add_executable(${name} ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc")
    add_test(NAME ${name} COMMAND ${name} "${corpus}")
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_USES} ${arg_PRIVATE})
endfunction()
