# What `cmake --install build` puts under a prefix: the public headers, librodeo.so, the command, the licence, and a package with which
# find_package(rodeo) gives plug-in authors the one target rodeo::rodeo - the public API and nothing else.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/rodeo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS rodeo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET rodeo_command)
  file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(rodeo_command PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  install(TARGETS rodeo_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/rodeo DESTINATION ${CMAKE_INSTALL_DATADIR}/rodeo/python FILES_MATCHING PATTERN "*.py")
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rodeo)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/rodeoConfig.cmake.in ${CMAKE_BINARY_DIR}/package/rodeoConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/rodeoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/rodeoConfig.cmake ${CMAKE_BINARY_DIR}/package/rodeoConfigVersion.cmake
  DESTINATION ${package_dir})
