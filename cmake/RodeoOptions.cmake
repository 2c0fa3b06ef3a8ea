# The compiler options of every target. One binary runs on any x86-64-v2; it chooses code for newer CPUs at run time.
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
option(RODEO_UNITY "Compile several sources of a room at once" ON)
option(RODEO_WHEEL "Build only the parts of the Python wheel" OFF)
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
# Commands, tests and rooms without events are compiled for size: the compiler takes three quarters of the time.
# g++ needs inlining to judge uninitialized variables; at this level it warns falsely.
add_library(rodeo_small INTERFACE)
if(NOT RODEO_SANITIZE)
  target_compile_options(rodeo_small INTERFACE
    $<$<CONFIG:RelWithDebInfo>:-Os>
    -Wno-maybe-uninitialized)
endif()
if(RODEO_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${RODEO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RODEO_SANITIZE})
endif()
if(RODEO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RODEO_FUZZ needs clang++; use the preset: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Warnings are errors in the plain trees of g++. In instrumented code g++ warns falsely, and clang builds only fuzzers.
add_library(rodeo_warnings INTERFACE)
if(RODEO_SANITIZE)
  target_compile_options(rodeo_warnings INTERFACE -w)
else()
  # g++ 12 reports -Wrestrict falsely on std::string's operator+ (GCC bug 105651), -Wstringop-overflow on fmt's parsing of formats.
  target_compile_options(rodeo_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict -Wno-stringop-overflow -Werror)
endif()
