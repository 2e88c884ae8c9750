# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# DAPPLE_PORTABLE: an installation that works from any folder, on any Linux with glibc 2.34 or later. From the system it
# takes the C library with its libgcc_s, and libibverbs and librdmacm, which must be the program's own. Everything else
# is inside the files, or beside them.
option(DAPPLE_PORTABLE "Install files that run from any folder and need no library but the system's C library and rdma-core" OFF)

if(DAPPLE_PORTABLE)
  # It leads from bin and from lib to lib. A shorter path would make valgrind report the loader, see dapple_shared.
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/../lib")
  # The installation keeps the room of the build's paths in each file. So these must not depend on the build's place.
  set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
  # A build identification depends on the debugging information, which has the build's place and is not in the archive.
  add_link_options(-Wl,--build-id=none)
  # Assertions and some messages name their files. Without the tree's path the same sources give the same bytes everywhere.
  set(names_files $<OR:$<BOOL:$<TARGET_PROPERTY:DAPPLE_KEEPS_ASSERTS>>,$<BOOL:$<TARGET_PROPERTY:DAPPLE_NAMES_FILES>>>)
  target_compile_options(dapple_plain_flags INTERFACE $<${names_files}:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
endif()

# dapple_portable_program(TARGETS...): brings libstdc++ inside the programs.
function(dapple_portable_program)
  if(DAPPLE_PORTABLE)
    foreach(target IN LISTS ARGN)
      target_link_options(${target} PRIVATE -static-libstdc++ -shared-libgcc -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now)
    endforeach()
  endif()
endfunction()

# dapple_carry(FILE TARGETS...): installs the library FILE beside the libraries that dapple-run loads, where the TARGETS
# find it. A folder that programs search has no copy, so no other program gets this one.
function(dapple_carry file)
  if(NOT DAPPLE_PORTABLE)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "SONAME +([^ \n]+)" soname "${headers}")
  set(soname ${CMAKE_MATCH_1})
  file(REAL_PATH ${file} library)
  install(PROGRAMS ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR}/dapple RENAME ${soname})
  foreach(target IN LISTS ARGN)
    # From lib/dapple and libexec/dapple.
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR}/dapple")
  endforeach()
endfunction()
