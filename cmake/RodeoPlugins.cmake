# The example plug-ins, built as a user builds theirs: the tree is installed to installed/ in the build folder, and plugins/ is a CMake
# project of its own that finds it there. The results go to plugins/ in the build folder.
include(ExternalProject)

set(RODEO_INSTALLED_DIR ${CMAKE_BINARY_DIR}/installed)
set(RODEO_PLUGIN_DIR ${CMAKE_BINARY_DIR}/plugins)
set(sanitize_flags)
if(RODEO_SANITIZE)
  set(sanitize_flags -fsanitize=${RODEO_SANITIZE})
endif()

add_custom_target(rodeo_installed
  COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${RODEO_INSTALLED_DIR} --component rodeo > ${CMAKE_BINARY_DIR}/installed.log
  COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${RODEO_INSTALLED_DIR} --component dev >> ${CMAKE_BINARY_DIR}/installed.log
  COMMENT "Installing to ${RODEO_INSTALLED_DIR}" VERBATIM)
add_dependencies(rodeo_installed rodeo rodeo_python)
if(TARGET rodeo_command)
  add_dependencies(rodeo_installed rodeo_command rodeo_fabric)
endif()

ExternalProject_Add(rodeo_plugins
  SOURCE_DIR ${CMAKE_SOURCE_DIR}/plugins
  BINARY_DIR ${CMAKE_BINARY_DIR}/plugins-build
  STAMP_DIR ${CMAKE_BINARY_DIR}/plugins-build/stamps
  TMP_DIR ${CMAKE_BINARY_DIR}/plugins-build/tmp
  DOWNLOAD_COMMAND ""
  INSTALL_COMMAND ""
  BUILD_ALWAYS ON
  DEPENDS rodeo_installed
  CMAKE_ARGS
    -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${RODEO_PLUGIN_LAUNCHER}
    -DCMAKE_CXX_FLAGS=${sanitize_flags}
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    -DCMAKE_PREFIX_PATH=${RODEO_INSTALLED_DIR}
    -DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${RODEO_PLUGIN_DIR})
