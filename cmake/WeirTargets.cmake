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
  target_include_directories(
    ${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endfunction()

# Compiles the sources of a target in batches, each batch as one file (WEIR_UNITY). The headers that
# the sources share are then read once per batch. WEIR_UNITY_FACTOR makes the batches larger, which
# costs less in total and more after a change of one source.
function(weir_unity target batch)
  if(WEIR_UNITY)
    math(EXPR batch "${batch} * ${WEIR_UNITY_FACTOR}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Fires on private types of a .cc file that another file includes, as every batch does.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# weir_library(FOLDER SOURCES file... [DEPS target...] [FUZZED])
#
# One folder of src/ as an object library: src/store/memory becomes weir_store_memory. Objects
# rather than archives, because the installed library is a single archive made of them. FUZZED: fuzz
# targets reach it, so they must see which of its branches an input takes.
function(weir_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "FUZZED" "" "SOURCES;DEPS")
  string(REPLACE "/" "_" name weir_${folder})
  add_library(${name} OBJECT ${ARG_SOURCES})
  weir_compile_options(${name})
  weir_unity(${name} 10)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set(headers weir_library_headers)
  if(WEIR_BUILD_FUZZERS AND ARG_FUZZED)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    set(headers weir_fuzzed_headers)
  endif()
  if(TARGET ${headers})
    target_precompile_headers(${name} REUSE_FROM ${headers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # g++ 12 warns of functions of the standard library that it inlines; usually it suppresses that,
      # but not if they come from a precompiled header. The preset `package` compiles without
      # precompiled headers and with these warnings.
      target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  endif()
endfunction()

# The headers that most sources include, compiled once. Only for builds that test: the preset
# `separate` compiles every source alone and without them, so that each still includes what it uses.
# weir_library_headers(NAME [OPTION...]): for the libraries that are compiled with these options.
function(weir_library_headers name)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/no_source.cc)
  weir_compile_options(${name})
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE Threads::Threads)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess) # for ccache
  endif()
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <atomic> <chrono>
                            <condition_variable> <cstdint> <cstring> <deque> <expected>
                            <functional> <map> <memory> <mutex> <optional> <span> <string>
                            <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endfunction()

# weir_test_program(NAME FOLDER SOURCES file... [DEPS target...])
#
# A GoogleTest program. FOLDER is where its sources are, relative to the project: test.sh builds the
# programs of a folder by the list that this writes.
function(weir_test_program name folder)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "SOURCES;DEPS")
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES WEIR_LIBRARIES_FIRST ON)
  weir_compile_options(${name})
  weir_unity(${name} 16)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} rapidcheck GTest::gmock_main)
  if(folder MATCHES "^src/")
    add_dependencies(unit_tests ${name})
  else()
    add_dependencies(cross_tests ${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY WEIR_TEST_PROGRAMS "${folder} ${name}")
endfunction()

# weir_suites_of(FILE VARIABLE): a GoogleTest filter that selects the suites of a source file.
# A test checks against the programs that every case is selected by exactly one filter.
function(weir_suites_of file variable)
  file(STRINGS ${file} lines
       REGEX "^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\\(")
  set(filters "")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([A-Z_]+)\\( *([A-Za-z0-9_]+)" matched "${line}")
    set(suite ${CMAKE_MATCH_2})
    if(CMAKE_MATCH_1 STREQUAL "TEST_P")
      list(APPEND filters "*/${suite}.*")
    elseif(CMAKE_MATCH_1 STREQUAL "TYPED_TEST")
      list(APPEND filters "${suite}/*.*")
    elseif(CMAKE_MATCH_1 STREQUAL "TYPED_TEST_P")
      list(APPEND filters "*/${suite}/*.*")
    elseif(CMAKE_MATCH_1 STREQUAL "RC_GTEST_FIXTURE_PROP")
      list(APPEND filters "${suite}_RapidCheck.*")
    else()
      list(APPEND filters "${suite}.*")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES filters)
  if(NOT filters)
    message(FATAL_ERROR "${file} has no test")
  endif()
  list(JOIN filters ":" filters)
  set(${variable} ${filters} PARENT_SCOPE)
endfunction()

# The headers that most tests include, compiled once for all test programs with the same options.
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
# The *_test.cc files of a directory (not of its subdirectories) as one program, PREFIX_tests, and
# each file as a ctest test PREFIX_STEM that runs the suites of that file. Its labels are the folder,
# `unit` below src/ (`heap` if it replaces operator new), and what the first line of the file says:
#
#   // threads           a test worth running under ThreadSanitizer
#   // threads: gate.cc  the same; it needs that source and nothing else of DEPS, so the tsan preset
#                        does not build DEPS for it
#   // long              a test with a short form, for which WEIR_SHORT is set, and a long one as a
#                        second test, PREFIX_STEM_long, labelled `long`
#
# A file that includes counting_heap.h replaces operator new, so it is a program of its own.
function(weir_tests_in directory prefix)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "HEADERS" "DEPS;OPTIONS")
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${directory})
  file(GLOB tests CONFIGURE_DEPENDS ${directory}/*_test.cc)
  set(together "")
  set(needed "") # by `// threads: FILE`
  set(needs_all NO)
  foreach(test IN LISTS tests)
    # Suites and labels are read when CMake configures, so an edited test must configure again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test})
    file(STRINGS ${test} first_line LIMIT_COUNT 1)
    set(labels ${folder})
    if(folder MATCHES "^src/")
      list(APPEND labels unit)
    endif()
    if(first_line MATCHES "// threads(: ([a-z_]+\\.cc))?")
      list(APPEND labels threads)
      if(CMAKE_MATCH_2)
        list(APPEND needed ${directory}/${CMAKE_MATCH_2})
      else()
        set(needs_all YES)
      endif()
    elseif(WEIR_ONLY_THREAD_TESTS)
      continue()
    else()
      set(needs_all YES)
    endif()

    get_filename_component(stem ${test} NAME_WE)
    set(name ${prefix}_${stem})
    weir_suites_of(${test} suites)
    file(STRINGS ${test} replaces_new REGEX "#include \"base/counting_heap\\.h\"")
    if(replaces_new)
      set(program ${name})
      weir_test_program(${program} ${folder} SOURCES ${test} DEPS ${ARG_DEPS})
      target_compile_options(${program} PRIVATE ${ARG_OPTIONS})
      # A sanitizer has a heap of its own, so only the release build can run it.
      list(TRANSFORM labels REPLACE "^unit$" "heap")
      add_dependencies(cross_tests ${program})
    else()
      set(program ${prefix}_tests)
      list(APPEND together ${test})
    endif()
    add_test(NAME ${name} COMMAND ${program} --gtest_filter=${suites})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${labels}")
    if(first_line STREQUAL "// long")
      set_tests_properties(${name} PROPERTIES ENVIRONMENT WEIR_SHORT=1)
      add_test(NAME ${name}_long COMMAND ${program} --gtest_filter=${suites})
      set_tests_properties(${name}_long PROPERTIES TIMEOUT 900 LABELS "${labels};long")
    endif()
  endforeach()

  if(together)
    if(NOT needs_all AND WEIR_ONLY_THREAD_TESTS)
      list(APPEND together ${needed})
      set(ARG_DEPS weir)
    endif()
    weir_test_program(${prefix}_tests ${folder} SOURCES ${together} DEPS ${ARG_DEPS})
    target_compile_options(${prefix}_tests PRIVATE ${ARG_OPTIONS})
    if(ARG_HEADERS)
      target_precompile_headers(${prefix}_tests REUSE_FROM ${ARG_HEADERS})
    endif()
  endif()
endfunction()

# weir_benches_in(DIRECTORY PREFIX [DEPS target...]): every *_bench.cc as a Google Benchmark program.
# `all` does not include them; the target micro_benchmarks does.
function(weir_benches_in directory prefix)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "DEPS")
  file(GLOB benches CONFIGURE_DEPENDS ${directory}/*_bench.cc)
  foreach(bench IN LISTS benches)
    get_filename_component(stem ${bench} NAME_WE)
    set(name ${prefix}_${stem})
    add_executable(${name} EXCLUDE_FROM_ALL ${bench})
    weir_compile_options(${name})
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
    add_dependencies(micro_benchmarks ${name})
  endforeach()
endfunction()

# weir_fuzzer(NAME SOURCES file... [DEPS target...])
#
# A libFuzzer program, built by the target `fuzzers`. As a ctest test it only replays
# tests/fuzz/corpus/NAME, where an input that once broke something stays; test.sh searches for new
# ones.
function(weir_fuzzer name)
  if(NOT WEIR_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS")
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  weir_compile_options(${name})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(IS_DIRECTORY ${corpus})
    add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 ${corpus})
    set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 600 LABELS tests/fuzz)
  endif()
endfunction()

# What test.sh builds: the tests below src/, and those below tests/.
if(WEIR_BUILD_TESTS)
  add_custom_target(unit_tests)
  add_custom_target(cross_tests)
endif()
if(WEIR_BUILD_BENCH)
  add_custom_target(micro_benchmarks)
endif()
if(WEIR_BUILD_FUZZERS)
  add_custom_target(fuzzers)
endif()
