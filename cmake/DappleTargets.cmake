# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# dapple_static(NAME sources...): an internal static library.
function(dapple_static name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE dapple_flags)
endfunction()

# dapple_plain_twin(NAME libraries...): NAME_plain, the same library without a sanitizer, which links with libraries.
function(dapple_plain_twin name)
  if(NOT DAPPLE_SANITIZE)
    add_library(${name}_plain ALIAS ${name})
    return()
  endif()
  get_target_property(sources ${name} SOURCES)
  add_library(${name}_plain STATIC ${sources})
  target_link_libraries(${name}_plain PUBLIC ${ARGN} PRIVATE dapple_plain_flags)
  dapple_no_exceptions(${name}_plain)
endfunction()

# dapple_keep_asserts(targets...): assertions stay in every build. For processes of our own, which another one replaces: a
# crash costs little there, and a wrong state costs much.
function(dapple_keep_asserts)
  set_target_properties(${ARGN} PROPERTIES DAPPLE_KEEPS_ASSERTS ON)
endfunction()

# dapple_names_files(TARGETS...): the targets use __FILE__ in every build, for what they log or announce.
function(dapple_names_files)
  set_target_properties(${ARGN} PROPERTIES DAPPLE_NAMES_FILES ON)
endfunction()

# dapple_no_exceptions(TARGET): compiles without exceptions and RTTI. The unwind tables stay, because cancelled threads
# unwind through this code; the compilers of some architectures would leave them out.
function(dapple_no_exceptions target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fasynchronous-unwind-tables>)
endfunction()

# dapple_short_copies(TARGET): the compiler clears and copies small structs by stores. Without a processor to tune for, gcc 12
# takes rep stos and rep movs, which begin so slowly that they took a fifth of the time of a short message's post.
function(dapple_short_copies target)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${target} PRIVATE -mtune=icelake-server)
  endif()
endfunction()

# dapple_shared(NAME OUTPUT base SOVERSION n [PACKAGE] MAP file SOURCES ... LIBS ...)
# dapple_shared(NAME OUTPUT base FOLDER folder [PLAIN] MAP file SOURCES ... LIBS ...)
#
# A library that applications load. It exports what MAP says and nothing else, and binds at load. libstdc++ is inside and
# hidden, because an old application may bring an older one first in its path. libgcc_s is the system's: pthread_cancel and
# pthread_exit unwind a thread's stack with the system's copy, and abort the process at a frame that belongs to another copy.
# FOLDER: the library is in a folder beside the others. Others load it by its path only, and it finds them relative to its own
# place. PACKAGE: dapple_package writes the files by which programs find the library. PLAIN: the library has no sanitizer.
function(dapple_shared name)
  cmake_parse_arguments(arg "PACKAGE;PLAIN" "OUTPUT;SOVERSION;MAP;FOLDER" "SOURCES;LIBS" ${ARGN})
  add_library(${name} SHARED ${arg_SOURCES})
  set(flags dapple_flags)
  if(arg_PLAIN)
    set(flags dapple_plain_flags)
  endif()
  target_link_libraries(${name} PRIVATE ${flags} ${arg_LIBS})
  cmake_path(ABSOLUTE_PATH arg_MAP BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${arg_OUTPUT} LINK_DEPENDS ${arg_MAP})
  if(arg_FOLDER)
    string(REGEX REPLACE "[^/]+" ".." up ${arg_FOLDER})
    # The path goes up and back again: when the C library looks for $ORIGIN it reads 16 bytes at once. If the text is
    # shorter, valgrind reports that in each program that loads one of these libraries.
    set_target_properties(${name} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${arg_FOLDER}
      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/${up}/${arg_FOLDER}/${up}")
  else()
    set_target_properties(${name} PROPERTIES SOVERSION ${arg_SOVERSION} VERSION ${arg_SOVERSION}.0.0)
  endif()
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${arg_MAP}
    -Wl,--no-undefined -Wl,-z,relro,-z,now -Wl,--exclude-libs,ALL -Wl,--as-needed
    # Links only the used parts of the C++ runtime.
    -Wl,--gc-sections)
  if(DAPPLE_SANITIZE AND NOT arg_PLAIN)
    # The loader finds the sanitizer's runtime when the program starts.
    target_link_options(${name} PRIVATE -Wl,-z,undefs)
  else()
    target_link_options(${name} PRIVATE -static-libstdc++ -shared-libgcc)
  endif()
  set(export)
  if(arg_PACKAGE)
    set(export EXPORT dapple-${name})
  endif()
  install(TARGETS ${name} ${export} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${arg_FOLDER} NAMELINK_COMPONENT dev
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# dapple_optimize_together(LIBRARY static libraries...): gcc inlines between them, as if they were one file. The static
# libraries' objects have ordinary code as well, for their other users. A sanitizer's build stays as it is.
function(dapple_optimize_together name)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR DAPPLE_SANITIZE)
    return()
  endif()
  set_target_properties(${name} PROPERTIES DAPPLE_OPTIMIZED_TOGETHER ON)
  # For such objects the assembler notes its folder in what debuggers read. A build that hides its path, as Debian's,
  # hides it from gcc alone.
  set(for_assembler)
  if(CMAKE_CXX_FLAGS MATCHES "-ffile-prefix-map=([^ ]+)")
    set(for_assembler -Wa,--debug-prefix-map=${CMAKE_MATCH_1})
  endif()
  foreach(target IN ITEMS ${name} LISTS ARGN)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects ${for_assembler})
  endforeach()
endfunction()

# dapple_unit_test(NAME SOURCES ... [LIBS ...] [LABELS ...]): a cmocka program that needs no RDMA device.
function(dapple_unit_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(test-${name} ${arg_SOURCES})
  target_link_libraries(test-${name} PRIVATE dapple_flags cmocka ${arg_LIBS})
  add_test(NAME ${name} COMMAND test-${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 120 SKIP_RETURN_CODE 77)
endfunction()
