# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Language level, warnings, hardening and sanitizers: one place for all targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# All programs and libraries are in one folder, so that one LD_LIBRARY_PATH serves the build tree.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# A program's process belongs to the program: an assertion of ours must not end it, so the libraries have none. Test builds
# have them everywhere. dapple_keep_asserts() sets the property of a target that has them in every build.
if(DAPPLE_ASSERTS STREQUAL "")
  string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" Debug DAPPLE_HAS_ASSERTS)
else()
  set(DAPPLE_HAS_ASSERTS ${DAPPLE_ASSERTS})
endif()
# Most build types define NDEBUG.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(with_asserts) # the option that a target with assertions needs
set(without_asserts -DNDEBUG)
if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" MATCHES "-DNDEBUG")
  set(with_asserts -UNDEBUG)
  set(without_asserts)
endif()
set(has_asserts $<OR:$<BOOL:${DAPPLE_HAS_ASSERTS}>,$<BOOL:$<TARGET_PROPERTY:DAPPLE_KEEPS_ASSERTS>>>)

# All targets use dapple_flags, except the few that sanitizers must leave alone.
add_library(dapple_plain_flags INTERFACE)
target_compile_options(dapple_plain_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wformat=2
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  -fstack-protector-strong
  $<IF:${has_asserts},${with_asserts},${without_asserts}>
  $<$<BOOL:${DAPPLE_WERROR}>:-Werror>)
# Sources include private headers by their path from the root; the dependency check reads these paths.
target_include_directories(dapple_plain_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(dapple_plain_flags INTERFACE _GNU_SOURCE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Other targets link the objects that are optimized together, too, with -fno-lto: gcc must not optimize them again there.
  # With one partition, gcc does not run make.
  set(together $<BOOL:$<TARGET_PROPERTY:DAPPLE_OPTIMIZED_TOGETHER>>)
  target_link_options(dapple_plain_flags INTERFACE $<IF:${together},-flto,-fno-lto> $<${together}:-flto-partition=one>)
endif()
add_library(dapple_flags INTERFACE)
target_link_libraries(dapple_flags INTERFACE dapple_plain_flags)

if(DAPPLE_SANITIZE)
  target_compile_options(dapple_flags INTERFACE
    -fsanitize=${DAPPLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # A C program may pass any number where a header has an enum, and gets an error for it. Without -fstrict-enums the
    # compiler keeps such a number.
    -fno-sanitize=enum)
  target_link_options(dapple_flags INTERFACE -fsanitize=${DAPPLE_SANITIZE})

  # A program without the sanitizer needs this library to load libraries with it. gcc's is a shared library.
  string(REGEX MATCH "address|thread" sanitizer "${DAPPLE_SANITIZE}")
  set(DAPPLE_SANITIZER_RUNTIME)
  if(sanitizer AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    string(SUBSTRING ${sanitizer} 0 1 letter)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${letter}san.so
      OUTPUT_VARIABLE DAPPLE_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(DAPPLE_SANITIZER_RUNTIME "${DAPPLE_SANITIZER_RUNTIME}" REALPATH)
  endif()
endif()
