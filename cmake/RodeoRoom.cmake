# One library target per room. Only targets that link to a room can include its headers, as "room/header.h": every room
# has its own include root, which contains only a link to its folder. So a dependency that the architecture does not
# allow is a missing header.
#
#   rodeo_room(base IMPORTS include SOURCES error.cpp units.cpp LIBRARIES spdlog::spdlog)
#
# BATCH N: one compilation reads N sources, which share the time for headers and templates (RODEO_UNITY).
# ALONE: sources outside of batches: those on the path of events, whose machine code does not depend on others, and those whose private names
# stand in another source, too.
#
# SMALL: sources that no event passes: compiled for size, in a target of their own, rodeo_<name>_small, of which librodeo.so has the objects, too.
#
# FOLDER names the folder of the headers if the target has another name: two targets can share a folder.
function(rodeo_room name)
  cmake_parse_arguments(ROOM "" "FOLDER;BATCH" "IMPORTS;SOURCES;ALONE;SMALL;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(folder ${name})
  if(ROOM_FOLDER)
    set(folder ${ROOM_FOLDER})
  endif()
  set(root ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${root})
  if(NOT EXISTS ${root}/${folder})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${folder} SYMBOLIC)
  endif()
  set(imports ${ROOM_IMPORTS})
  list(TRANSFORM imports PREPEND rodeo_)
  add_library(rodeo_${name} OBJECT ${ROOM_SOURCES} ${ROOM_ALONE})
  set(targets rodeo_${name})
  if(ROOM_SMALL)
    add_library(rodeo_${name}_small OBJECT ${ROOM_SMALL})
    target_link_libraries(rodeo_${name}_small PRIVATE rodeo_small)
    list(APPEND targets rodeo_${name}_small)
  endif()
  set_source_files_properties(${ROOM_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(target IN LISTS targets)
    target_include_directories(${target} PUBLIC ${root})
    target_link_libraries(${target} PUBLIC ${imports} ${ROOM_LIBRARIES} PRIVATE rodeo_warnings ${ROOM_PRIVATE_LIBRARIES})
    if(RODEO_UNITY AND ROOM_BATCH)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ROOM_BATCH})
      # The compiler takes a class in a source of a batch for one of a header.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(rodeo_small IN_LIST libraries)
      rodeo_precompiled(${target} commands)
    else()
      # Each function begins a cache line, so that the speed of a hot loop does not depend on the code before it (up to 4 % of GBT building).
      if(NOT RODEO_SANITIZE AND NOT RODEO_FUZZ)
        target_compile_options(${target} PRIVATE -falign-functions=64)
      endif()
      rodeo_precompiled(${target} rooms)
    endif()
  endforeach()
endfunction()
