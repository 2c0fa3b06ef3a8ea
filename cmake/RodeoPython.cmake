# Extension modules of the Python package, bound with nanobind (a pip package, tools/requirements.txt).
#
#   rodeo_python_module(network SOURCES network.cpp)      makes rodeo._network
#
# build/python/rodeo/ is the package: links to python/rodeo/, and the modules beside them. To use it, set PYTHONPATH=build/python.
# Without Python's headers or nanobind the modules are left out, with a message; code that needs them then reports this.

# The interpreter of .venv, which the command runs.
set(RODEO_PYTHON_MODULES OFF)
set(python_interpreter ${CMAKE_SOURCE_DIR}/.venv/bin/python3)
if(SKBUILD)
  set(python_interpreter ${Python_EXECUTABLE})
endif()
if(NOT EXISTS ${python_interpreter})
  unset(python_interpreter)
  find_program(python_interpreter python3 NO_CACHE)
endif()
if(python_interpreter AND NOT RODEO_SANITIZE AND NOT RODEO_FUZZ)
  set(Python_EXECUTABLE ${python_interpreter})
  find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${python_interpreter} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE nanobind_missing ERROR_QUIET)
  if(NOT Python_Development.Module_FOUND)
    message(STATUS "No Python modules: the headers of ${python_interpreter} are missing (Debian: python3-dev)")
  elseif(nanobind_missing)
    message(STATUS "No Python modules: ${python_interpreter} has no nanobind (tools/setup)")
  else()
    find_package(nanobind CONFIG REQUIRED)
    set(RODEO_PYTHON_MODULES ON)
  endif()
endif()

set(RODEO_PYTHON_PACKAGE ${CMAKE_BINARY_DIR}/python/rodeo)
add_custom_target(rodeo_python)
set(installed False)
configure_file(${CMAKE_SOURCE_DIR}/python/version.py.in ${RODEO_PYTHON_PACKAGE}/_version.py @ONLY)
set(installed True)
configure_file(${CMAKE_SOURCE_DIR}/python/version.py.in ${CMAKE_BINARY_DIR}/package/_version.py @ONLY)

# The verbs that are written in Python, for completion and manual pages (src/cli/control_verbs.h).
if(NOT python_interpreter)
  find_program(python_interpreter python3 NO_CACHE)
endif()
if(python_interpreter)
  file(GLOB_RECURSE control_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/rodeo/control/*.py)
  add_custom_command(OUTPUT ${RODEO_PYTHON_PACKAGE}/_verbs.json
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${CMAKE_SOURCE_DIR}/python ${python_interpreter} -B -m rodeo.control.cli.describe ${RODEO_PYTHON_PACKAGE}/_verbs.json
    DEPENDS ${control_sources} VERBATIM)
  add_custom_target(rodeo_python_verbs DEPENDS ${RODEO_PYTHON_PACKAGE}/_verbs.json)
  add_dependencies(rodeo_python rodeo_python_verbs)
endif()

function(rodeo_python_package directory)
  file(MAKE_DIRECTORY ${RODEO_PYTHON_PACKAGE})
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE ${directory} ${directory}/*)
  list(REMOVE_ITEM entries __pycache__)
  foreach(entry ${entries})
    file(CREATE_LINK ${directory}/${entry} ${RODEO_PYTHON_PACKAGE}/${entry} SYMBOLIC)
  endforeach()
endfunction()

function(rodeo_python_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT RODEO_PYTHON_MODULES OR (RODEO_WHEEL AND NOT name STREQUAL "data"))
    return()
  endif()
  set(target rodeo_python_${name})
  # Hide findings of clang-tidy in nanobind.
  nanobind_add_module(${target} NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${MODULE_SOURCES})
  target_link_libraries(${target} PRIVATE rodeo ${MODULE_LIBRARIES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME _${name} LIBRARY_OUTPUT_DIRECTORY ${RODEO_PYTHON_PACKAGE}
    UNITY_BUILD ${RODEO_UNITY} UNITY_BUILD_BATCH_SIZE 4)
  if(RODEO_WHEEL)
    # Keep Rodeo's symbols inside the module.
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    target_compile_definitions(${target} PRIVATE RODEO_WHEEL)
    install(TARGETS ${target} LIBRARY DESTINATION rodeo COMPONENT wheel)
    return()
  endif()
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    file(RELATIVE_PATH to_library ${RODEO_INSTALL_PYTHON_DIR}/rodeo ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rodeo/python/rodeo COMPONENT rodeo)
  add_dependencies(rodeo_python ${target})
endfunction()
