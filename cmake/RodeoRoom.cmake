# One library target per room. A room's headers are reached as "room/header.h", and only by targets that link to it:
# every room has an include root of its own that holds nothing but a link to its folder, so that an arrow which the
# architecture does not allow is a missing header, not a review comment.
#
#   rodeo_room(base IMPORTS include SOURCES error.cpp units.cpp LIBRARIES spdlog::spdlog)
function(rodeo_room name)
  cmake_parse_arguments(ROOM "" "" "IMPORTS;SOURCES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${root})
  if(NOT EXISTS ${root}/${name})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  endif()
  add_library(rodeo_${name} OBJECT ${ROOM_SOURCES})
  target_include_directories(rodeo_${name} PUBLIC ${root})
  set(imports ${ROOM_IMPORTS})
  list(TRANSFORM imports PREPEND rodeo_)
  target_link_libraries(rodeo_${name} PUBLIC ${imports} ${ROOM_LIBRARIES} PRIVATE rodeo_warnings ${ROOM_PRIVATE_LIBRARIES})
  if(rodeo_small IN_LIST ROOM_PRIVATE_LIBRARIES)
    rodeo_precompiled(rodeo_${name} commands)
  else()
    # Each function begins a cache line: how fast a hot loop is does not hang on what stands before it in the library (4 % of GBT building were seen).
    if(NOT RODEO_SANITIZE AND NOT RODEO_FUZZ)
      target_compile_options(rodeo_${name} PRIVATE -falign-functions=64)
    endif()
    rodeo_precompiled(rodeo_${name} rooms)
  endif()
endfunction()
