# Packages, made by cpack from one description: for Debian 12 (cpack -G DEB) and for EL9 (cpack -G RPM). tools/packages-build makes both.
#
# Two packages: `rodeo` for hosts that take data, and `rodeo-dev` (EL9: `rodeo-devel`) with headers and CMake package for building plug-ins. A
# readout host needs no compiler, and both distributions split libraries in this way.
set(RODEO_PACKAGE "" CACHE STRING "Distribution of the packages from this tree: debian, el9, or none")
set_property(CACHE RODEO_PACKAGE PROPERTY STRINGS "" debian el9)
set(RODEO_PACKAGE_MAINTAINER "Rodeo maintainers <rodeo@packages.invalid>" CACHE STRING "Maintainer of packages made from this tree")
if(NOT RODEO_PACKAGE)
  return()
endif()
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "packages are installed below /usr: -DCMAKE_INSTALL_PREFIX=/usr (cmake --preset package)")
endif()
set(packaging ${CMAKE_SOURCE_DIR}/packaging)
set(made ${CMAKE_BINARY_DIR}/package)

# Makes `import rodeo` work in the distribution's Python.
file(WRITE ${made}/rodeo.pth "${RODEO_INSTALL_PYTHON_DIR}\n")
if(RODEO_PACKAGE STREQUAL "debian")
  install(FILES ${made}/rodeo.pth DESTINATION lib/python3/dist-packages)
else()
  install(FILES ${made}/rodeo.pth DESTINATION lib/python3.11/site-packages)
endif()

set(CPACK_PACKAGE_NAME rodeo)
set(CPACK_PACKAGE_VENDOR "Rodeo")
set(CPACK_PACKAGE_CONTACT "${RODEO_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "software readout for physics experiments")
set(what "Rodeo takes what detector links send, builds the fragment of every trigger
from them, and writes event files whose every byte can be proved. It drives
readout cards from userspace, reads ATLAS FELIX and ALICE CRU formats, runs a
system of processes from a control room, and sizes the network behind it.")
set(what_dev "Headers and CMake package for plug-ins of Rodeo: inputs, builders, consumers,
extractors and checkers of a detector. `rodeo plugin new` writes one.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL rodeo dev)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENT_RODEO_DESCRIPTION "${what}")
set(CPACK_COMPONENT_DEV_DESCRIPTION "${what_dev}")

if(RODEO_PACKAGE STREQUAL "debian")
  set(CPACK_GENERATOR DEB)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_DEBIAN_RODEO_PACKAGE_NAME rodeo)
  set(CPACK_DEBIAN_RODEO_PACKAGE_SECTION science)
  # Modules are for one version of Python, and give data files and cards as NumPy arrays. Control room, sizing and plots need packages that Debian 12 lacks,
  # or newer versions: rodeo-python-packages installs them.
  set(CPACK_DEBIAN_RODEO_PACKAGE_DEPENDS "python3 (>= 3.11~), python3 (<< 3.12), adduser")
  set(CPACK_DEBIAN_RODEO_PACKAGE_RECOMMENDS "python3-numpy, python3-venv")
  set(CPACK_DEBIAN_RODEO_PACKAGE_SUGGESTS "rodeo-dev")
  set(CPACK_DEBIAN_RODEO_PACKAGE_CONTROL_EXTRA "${packaging}/debian/postinst;${packaging}/debian/prerm;${packaging}/debian/postrm;${packaging}/debian/triggers")
  set(CPACK_DEBIAN_DEV_PACKAGE_NAME rodeo-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "rodeo (= ${PROJECT_VERSION}-1)")

  string(TIMESTAMP RODEO_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(${packaging}/debian/changelog.in ${made}/changelog.Debian @ONLY)
  configure_file(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${made}/changelog COPYONLY)
  execute_process(COMMAND gzip -9nkf ${made}/changelog.Debian ${made}/changelog COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${made}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rodeo)
  foreach(component IN ITEMS rodeo dev)
    string(TOUPPER ${component} upper)
    set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    install(FILES ${packaging}/debian/copyright ${made}/changelog.Debian.gz DESTINATION share/doc/${name} COMPONENT ${component})
    install(FILES ${packaging}/debian/lintian-${name} DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${component})
  endforeach()
else()
  set(CPACK_GENERATOR RPM)
  set(CPACK_RPM_COMPONENT_INSTALL ON)
  set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
  set(CPACK_RPM_PACKAGE_RELEASE 1.el9)
  set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
  set(CPACK_RPM_PACKAGE_ARCHITECTURE x86_64)
  set(CPACK_RPM_MAIN_COMPONENT rodeo)
  set(CPACK_RPM_RODEO_PACKAGE_NAME rodeo)
  set(CPACK_RPM_RODEO_PACKAGE_REQUIRES "python3.11, shadow-utils")
  set(CPACK_RPM_RODEO_PACKAGE_SUGGESTS "python3.11-numpy, python3.11-scipy")
  set(CPACK_RPM_RODEO_POST_INSTALL_SCRIPT_FILE ${packaging}/rpm/post)
  set(CPACK_RPM_RODEO_PRE_UNINSTALL_SCRIPT_FILE ${packaging}/rpm/preun)
  set(CPACK_RPM_DEV_PACKAGE_NAME rodeo-devel)
  set(CPACK_RPM_DEV_PACKAGE_REQUIRES "rodeo = ${PROJECT_VERSION}-1.el9")
  set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d /usr/lib/tmpfiles.d /usr/lib/udev /usr/lib/udev/rules.d /usr/lib/python3.11
    /usr/lib/python3.11/site-packages /usr/lib64/cmake /usr/sbin /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish
    /usr/share/fish/vendor_completions.d /usr/share/man /usr/share/man/man1 /usr/share/zsh /usr/share/zsh/site-functions /usr/share/man/man8)
endif()
include(CPack)
