# The standard headers take half of the compiler's time for a source. So they are compiled once for each set of options, and used by every target
# with rodeo_precompiled(TARGET KIND):
#
#   rooms   -O3, position independent       commands   the same for size (rodeo_small)       tests   for size, with GoogleTest
#
# RODEO_PRECOMPILE=OFF compiles every source with its own includes only, as for packages.
set(RODEO_PLUGIN_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})  # plug-ins are a project of their own, without precompiled headers
option(RODEO_PRECOMPILE "Compile the standard headers once for many sources (g++)" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR RODEO_FUZZ)
  set(RODEO_PRECOMPILE OFF)
endif()

if(RODEO_PRECOMPILE)
  # Tell ccache to ignore the macros and the time of a compiled header: its hash covers its contents.
  if(CMAKE_CXX_COMPILER_LAUNCHER STREQUAL CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
    add_compile_options(-fpch-preprocess)
  endif()
  # g++ 12 does not treat a compiled header as a system header, and warns falsely about its strings (as in GCC bug 105651).
  target_compile_options(rodeo_warnings INTERFACE -Wno-stringop-overread -Wno-array-bounds)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/empty.cpp CONTENT "")
  foreach(kind IN ITEMS rooms commands tests)
    add_library(rodeo_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/empty.cpp)
    target_link_libraries(rodeo_precompiled_${kind} PRIVATE fmt::fmt rodeo_warnings)
    target_precompile_headers(rodeo_precompiled_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
  endforeach()
  target_link_libraries(rodeo_precompiled_commands PRIVATE rodeo_small)
endif()

function(rodeo_precompiled target kind)
  if(RODEO_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM rodeo_precompiled_${kind})
  endif()
endfunction()
