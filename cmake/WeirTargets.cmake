# How this project's targets are made. Flags are set per target, never globally, so that a
# program that embeds Weir keeps its own.

function(weir_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion
                                           -Wshadow)
  if(WEIR_DEVELOPER)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105651: a false alarm on `"text" + std::string`.
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # The 16-byte compare-and-swap. Every x86-64 processor since 2006 has it; the baseline has not.
    target_compile_options(${target} PRIVATE -mcx16)
  endif()
  if(WEIR_BUILD_FUZZERS)
    # Lets the fuzzer see which branches of the library an input reached; no effect elsewhere.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  target_include_directories(
    ${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endfunction()

# weir_library(FOLDER SOURCES file... [DEPS target...])
#
# One folder of src/ as an object library: src/store/memory becomes weir_store_memory. Objects
# rather than archives, because the installed library is a single archive made of them.
function(weir_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS")
  string(REPLACE "/" "_" name weir_${folder})
  add_library(${name} OBJECT ${ARG_SOURCES})
  weir_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  if(TARGET weir_library_headers)
    target_precompile_headers(${name} REUSE_FROM weir_library_headers)
  endif()
endfunction()

# What most sources read before they begin, compiled once; for builds that only test. Where it is
# left out, as in the release that users get, every source must name what it needs.
function(weir_library_headers)
  add_library(weir_library_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/no_source.cc)
  weir_compile_options(weir_library_headers)
  target_link_libraries(weir_library_headers PRIVATE Threads::Threads)
  target_precompile_headers(weir_library_headers PRIVATE <algorithm> <array> <atomic> <chrono>
                            <condition_variable> <cstdint> <cstring> <deque> <expected>
                            <functional> <map> <memory> <mutex> <optional> <span> <string>
                            <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endfunction()

# weir_test(NAME SOURCES file... [DEPS target...] [LABELS label...])
#
# One GoogleTest binary, one ctest test. gtest_discover_tests would start every binary at build
# time and once per case, which takes minutes under the sanitizers.
function(weir_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS;LABELS")
  add_executable(${name} ${ARG_SOURCES})
  weir_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} rapidcheck GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
endfunction()

# What most tests read before they begin, compiled once for all that are compiled alike.
function(weir_test_headers)
  add_library(weir_test_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/no_source.cc)
  weir_compile_options(weir_test_headers)
  target_compile_options(weir_test_headers PRIVATE ${ARGN})
  target_link_libraries(weir_test_headers PRIVATE Threads::Threads rapidcheck GTest::gmock_main)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(weir_test_headers PRIVATE -fpch-preprocess) # for ccache
  endif()
  target_precompile_headers(weir_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm>
                            <chrono> <functional> <map> <memory> <optional> <string> <vector>)
endfunction()

# weir_tests_in(DIRECTORY PREFIX [DEPS target...] [HEADERS target] [OPTIONS option...])
#
# Every *_test.cc of a directory (not of its subdirectories) as a test called PREFIX_stem. A first
# line that contains `// threads` says that the test is worth running under ThreadSanitizer; one with
# `// threads: gate.cc` also that it needs that file and nothing else of DEPS, which then need not be
# built for it.
function(weir_tests_in directory prefix)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "HEADERS" "DEPS;OPTIONS")
  file(GLOB tests CONFIGURE_DEPENDS ${directory}/*_test.cc)
  foreach(test IN LISTS tests)
    # The label is read at configure time, so an edited test must configure again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test})
    file(STRINGS ${test} first_line LIMIT_COUNT 1)
    set(labels "")
    set(sources ${test})
    set(deps ${ARG_DEPS})
    if(first_line MATCHES "// threads(: ([a-z_]+\\.cc))?")
      set(labels threads)
      if(CMAKE_MATCH_2)
        list(APPEND sources ${directory}/${CMAKE_MATCH_2})
        set(deps weir)
      endif()
    endif()
    get_filename_component(stem ${test} NAME_WE)
    weir_test(${prefix}_${stem} SOURCES ${sources} DEPS ${deps} LABELS ${labels})
    target_compile_options(${prefix}_${stem} PRIVATE ${ARG_OPTIONS})
    if(ARG_HEADERS)
      target_precompile_headers(${prefix}_${stem} REUSE_FROM ${ARG_HEADERS})
    endif()
  endforeach()
endfunction()

# weir_benches_in(DIRECTORY PREFIX [DEPS target...]): the same for *_bench.cc, with Google Benchmark.
function(weir_benches_in directory prefix)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "DEPS")
  file(GLOB benches CONFIGURE_DEPENDS ${directory}/*_bench.cc)
  foreach(bench IN LISTS benches)
    get_filename_component(stem ${bench} NAME_WE)
    add_executable(${prefix}_${stem} ${bench})
    weir_compile_options(${prefix}_${stem})
    target_link_libraries(${prefix}_${stem} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
  endforeach()
endfunction()

# weir_fuzzer(NAME SOURCES file... [DEPS target...])
#
# A libFuzzer program. As a ctest test it only replays tests/fuzz/corpus/NAME, where an input that
# once broke something stays; test.sh does the searching.
function(weir_fuzzer name)
  if(NOT WEIR_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS")
  add_executable(${name} ${ARG_SOURCES})
  weir_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(IS_DIRECTORY ${corpus})
    add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 ${corpus})
    set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 600)
  endif()
endfunction()

if(WEIR_BUILD_TESTS)
  # Everything the tsan preset runs, and nothing it does not.
  add_custom_target(thread_tests)
endif()
