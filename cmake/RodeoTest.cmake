# The common part of all kinds of tests: one scale for time-outs (sanitizers are slow; tests do not scale by themselves), and the environment.
if(RODEO_SANITIZE MATCHES "thread")
  set(scale 10)
elseif(RODEO_SANITIZE)
  set(scale 5)
else()
  set(scale 1)
endif()
set(RODEO_TEST_TIMEOUT_SCALE ${scale} CACHE STRING "Factor on every time-out in tests")

# One variable only: gtest_discover_tests takes no list here.
set(RODEO_TEST_ENVIRONMENT RODEO_TEST_TIMEOUT_SCALE=${RODEO_TEST_TIMEOUT_SCALE})

# `seconds` are for an undisturbed release build.
function(rodeo_test_timeout test seconds)
  math(EXPR scaled "${seconds} * ${RODEO_TEST_TIMEOUT_SCALE}")
  set_tests_properties(${test} PROPERTIES TIMEOUT ${scaled} ENVIRONMENT "${RODEO_TEST_ENVIRONMENT}")
  if(ARGN)
    set_tests_properties(${test} PROPERTIES LABELS "${ARGN}")
  endif()
endfunction()

# The interpreter of .venv; in a tree that was configured before tools/setup ran, the first python3 of PATH.
find_program(RODEO_PYTHON python3 PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT RODEO_PYTHON)
  unset(RODEO_PYTHON CACHE)
  find_program(RODEO_PYTHON python3 REQUIRED)
endif()

# Registers each test_*.py of this folder as <label>.<name>, unless the whole file is marked slow, and its tests marked slow as
# <label>.<name>.slow.
function(rodeo_python_tests label seconds)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.py)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    set(command ${RODEO_PYTHON} -B -m pytest -q -rs -p no:cacheprovider --strict-markers --rootdir ${CMAKE_SOURCE_DIR} ${file})
    # No test uses the pytest plug-ins that packages in .venv bring, and importing them dominated the start.
    set(environment ${RODEO_TEST_ENVIRONMENT} RODEO_BUILD_DIR=${CMAKE_BINARY_DIR} PYTEST_DISABLE_PLUGIN_AUTOLOAD=1)
    # The longest tests begin first, so that no core is idle at the end.
    set(properties SKIP_RETURN_CODE 5 COST 10)
    # A file that needs the resources of several tests has PROCESSORS = this number.
    file(STRINGS ${file} processors REGEX "^PROCESSORS = [0-9]+")
    if(processors MATCHES "([0-9]+)")
      list(APPEND properties PROCESSORS ${CMAKE_MATCH_1})
    endif()
    file(STRINGS ${file} all_slow REGEX "^(pytestmark = |    )pytest\\.mark\\.slow")
    if(NOT all_slow)
      add_test(NAME ${label}.${name} COMMAND ${command} -m "not slow")
      rodeo_test_timeout(${label}.${name} ${seconds} ${label})
      set_tests_properties(${label}.${name} PROPERTIES ${properties} ENVIRONMENT "${environment}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} slow REGEX "pytest\\.mark\\.slow")
    if(slow)
      math(EXPR slow_seconds "${seconds} * 5")
      add_test(NAME ${label}.${name}.slow COMMAND ${command} -m slow)
      rodeo_test_timeout(${label}.${name}.slow ${slow_seconds} ${label} slow)
      set_tests_properties(${label}.${name}.slow PROPERTIES ${properties} ENVIRONMENT "${environment}")
    endif()
  endforeach()
endfunction()
