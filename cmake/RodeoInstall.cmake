# The files that `cmake --install build` puts under a prefix. Packages are made of two components (RodeoPackage.cmake):
#
#   rodeo   for a readout host: the command, librodeo.so, the Python package, completion, manual pages, units, documents, examples
#   dev     for building plug-ins: the public headers, and a CMake package: find_package(rodeo) gives the target rodeo::rodeo
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME rodeo)
# What ./run does not build, and the example plug-ins do not wait for (RodeoPlugins.cmake): installed if it is there. In packages it is a part of the
# component rodeo, and must be there.
set(later later OPTIONAL)
if(RODEO_PACKAGE)
  set(later rodeo)
endif()
set(private_dir ${CMAKE_INSTALL_LIBDIR}/rodeo)
set(python_dir ${private_dir}/python)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/rodeo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(TARGETS rodeo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rodeo NAMELINK_COMPONENT dev)
if(TARGET rodeo_fabric)
  install(TARGETS rodeo_fabric LIBRARY DESTINATION ${private_dir} COMPONENT rodeo)
endif()

# Below /usr the dynamic linker finds the library without a path.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  if(TARGET rodeo_command)
    set_target_properties(rodeo_command rodeo_bench_program PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  endif()
  if(TARGET rodeo_fabric)
    set_target_properties(rodeo_fabric PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  endif()
endif()

if(TARGET rodeo_command)
  install(TARGETS rodeo_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS rodeo_bench_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${later})

  # Python, with the control room's page and migrations. RodeoPython.cmake installs the extension modules.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/rodeo DESTINATION ${python_dir}
    PATTERN "*.md" EXCLUDE PATTERN "__pycache__" EXCLUDE PATTERN "describe.py" EXCLUDE)
  install(FILES ${CMAKE_BINARY_DIR}/package/_version.py DESTINATION ${python_dir}/rodeo)
  install(FILES ${RODEO_PYTHON_PACKAGE}/_verbs.json DESTINATION ${python_dir}/rodeo OPTIONAL)
  install(FILES ${CMAKE_SOURCE_DIR}/tools/requirements.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/rodeo RENAME python-packages.txt)
  configure_file(${CMAKE_SOURCE_DIR}/packaging/rodeo-python-packages.in ${CMAKE_BINARY_DIR}/package/rodeo-python-packages @ONLY)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/package/rodeo-python-packages DESTINATION ${CMAKE_INSTALL_SBINDIR})

  # Completion and manual pages, generated from the tree of verbs.
  set(RODEO_GENERATED ${CMAKE_BINARY_DIR}/generated)
  set(compress)
  if(RODEO_PACKAGE)
    set(compress COMMAND gzip -9nr ${RODEO_GENERATED}/man)
  endif()
  add_custom_command(OUTPUT ${RODEO_GENERATED}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${RODEO_GENERATED}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${RODEO_GENERATED}
    COMMAND rodeo_command man ${RODEO_GENERATED}/man
    COMMAND rodeo_command completion bash > ${RODEO_GENERATED}/rodeo.bash
    COMMAND rodeo_command completion zsh > ${RODEO_GENERATED}/rodeo.zsh
    COMMAND rodeo_command completion fish > ${RODEO_GENERATED}/rodeo.fish
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/packaging/rodeo-python-packages.8 ${RODEO_GENERATED}/man
    ${compress}
    COMMAND ${CMAKE_COMMAND} -E touch ${RODEO_GENERATED}/made
    DEPENDS rodeo_command rodeo_bench_program rodeo_python ${CMAKE_SOURCE_DIR}/packaging/rodeo-python-packages.8 VERBATIM)
  add_custom_target(rodeo_generated ALL DEPENDS ${RODEO_GENERATED}/made)
  foreach(section IN ITEMS 1 8)
    install(DIRECTORY ${RODEO_GENERATED}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${later} FILES_MATCHING PATTERN "*.${section}" PATTERN "*.${section}.gz")
  endforeach()
  install(FILES ${RODEO_GENERATED}/rodeo.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME rodeo COMPONENT ${later})
  install(FILES ${RODEO_GENERATED}/rodeo.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME rodeo.fish COMPONENT ${later})
  set(RODEO_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Directory of zsh's completions")
  install(FILES ${RODEO_GENERATED}/rodeo.zsh DESTINATION ${RODEO_ZSH_DIR} RENAME _rodeo COMPONENT ${later})

  # Services.
  set(units rodeo-control@.service rodeo-emulate@.service rodeo-farm-filter@.service rodeo-farm-record@.service rodeo-farm-supervise@.service
    rodeo-keeper.service rodeo-readout@.service rodeo-route@.service)
  foreach(unit IN LISTS units)
    configure_file(${CMAKE_SOURCE_DIR}/packaging/systemd/${unit}.in ${CMAKE_BINARY_DIR}/package/systemd/${unit} @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/package/systemd/${unit} DESTINATION lib/systemd/system)
  endforeach()
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME rodeo.conf)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/systemd/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME rodeo.conf)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/70-rodeo.rules DESTINATION lib/udev/rules.d)

  # Documents and examples.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "figures" EXCLUDE PATTERN "*.png" EXCLUDE PATTERN "site" EXCLUDE)
  # tools/docs builds the site; without it `rodeo docs` says so.
  install(DIRECTORY ${CMAKE_BINARY_DIR}/site/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html OPTIONAL)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    PATTERN "data" EXCLUDE PATTERN "__pycache__" EXCLUDE PATTERN "*.data" EXCLUDE PATTERN "*.felix" EXCLUDE PATTERN "*.writing" EXCLUDE PATTERN "run*.json" EXCLUDE)
endif()
# Debian has other places and names for these files.
if(NOT RODEO_PACKAGE STREQUAL "debian")
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rodeo)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/rodeoConfig.cmake.in ${CMAKE_BINARY_DIR}/package/rodeoConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/rodeoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/rodeoConfig.cmake ${CMAKE_BINARY_DIR}/package/rodeoConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT dev)
