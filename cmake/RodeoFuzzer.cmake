# One decoder, one fuzzer: see tests/fuzz/README.md.
#
#   rodeo_fuzzer(felix_block SOURCES felix_block_fuzzer.cpp)
#
# With RODEO_FUZZ (clang) this builds the libFuzzer binary fuzz/<name>. In every other tree it builds replay/<name>, which feeds the
# files of corpus/<name>/ through the same function, and registers it in ctest as fuzz.<name>.
function(rodeo_fuzzer name)
  cmake_parse_arguments(FUZZER "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  file(GLOB seeds LIST_DIRECTORIES false ${corpus}/*)
  if(NOT seeds)
    message(FATAL_ERROR "fuzzer ${name} has no seed in ${corpus}")
  endif()
  set(target fuzz_${name})
  add_executable(${target} ${FUZZER_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE rodeo ${FUZZER_LIBRARIES} rodeo_warnings)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  if(RODEO_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  else()
    target_link_libraries(${target} PRIVATE rodeo_fuzz_replay)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/replay)
    add_test(NAME fuzz.${name} COMMAND ${target} ${corpus})
    rodeo_test_timeout(fuzz.${name} 60 fuzz)
  endif()
endfunction()
