# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# dapple_man_pages([FOLDER]): installs the manual pages of FOLDER, by default man beside the CMakeLists.txt that calls it. The
# section is what a file's name ends in: NAME.3dat goes to man3. Pages of functions belong to developers.
function(dapple_man_pages)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/man)
  if(ARGC GREATER 0)
    set(folder ${ARGV0})
  endif()
  file(GLOB pages CONFIGURE_DEPENDS ${folder}/*.[1-8]*)
  foreach(page IN LISTS pages)
    if(NOT page MATCHES "\\.([1-8])[a-z]*$")
      continue()
    endif()
    set(section ${CMAKE_MATCH_1})
    set(component)
    if(section EQUAL 3)
      set(component COMPONENT dev)
    endif()
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} ${component})
  endforeach()
endfunction()
