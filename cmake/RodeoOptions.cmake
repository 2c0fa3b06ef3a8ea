# What every target is compiled with. One binary runs on any x86-64-v2; code for newer CPUs is chosen at run time.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

option(RODEO_TESTS "Build the test suite" ON)
option(RODEO_BENCH "Build the kernel benchmarks" ON)
option(RODEO_ASSERTIONS "Keep assert() in optimised builds" ON)
option(RODEO_FUZZ "Build the fuzzers (clang)" OFF)
set(RODEO_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# -g1 keeps line tables for profiles and sanitizer reports at a third of the size of full debug information.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1")
if(NOT RODEO_ASSERTIONS)
  string(APPEND CMAKE_CXX_FLAGS_RELWITHDEBINFO " -DNDEBUG")
endif()
add_compile_options(-march=x86-64-v2 -fno-semantic-interposition -fvisibility-inlines-hidden)
if(RODEO_SANITIZE)
  add_compile_options(-fsanitize=${RODEO_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RODEO_SANITIZE})
endif()

add_library(rodeo_warnings INTERFACE)
target_compile_options(rodeo_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror)
