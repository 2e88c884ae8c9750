# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# dapple_man_pages([FOLDER]): installs the manual pages of FOLDER, by default the folder man beside the CMakeLists.txt
# that calls it. The end of a file's name gives the section: NAME.3dat goes to man3. Pages of functions belong to
# developers.
#
# A file in FOLDER/shared holds text that several pages share. In a page, the line ".so shared/NAME" stands for it. An
# installed page must be complete, so the build tree has a copy of such a page with the text in place, in pages/, and
# that copy is installed.
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
    dapple_complete_man_page(page)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} ${component})
  endforeach()
endfunction()

# dapple_complete_man_page(VARIABLE): VARIABLE holds the path of a page. If the page has shared text, its complete copy takes the
# page's place. Below pages/, the copy has the page's path in the source tree.
function(dapple_complete_man_page variable)
  set(page ${${variable}})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} text)
  string(REGEX MATCHALL "\n\\.so shared/[^\n]+" lines "${text}")
  if(NOT lines)
    return()
  endif()
  cmake_path(GET page PARENT_PATH folder)
  foreach(line IN LISTS lines)
    string(REPLACE "\n.so " "" name "${line}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
    file(READ ${folder}/${name} shared)
    # The comments at the top belong to the file, not to the page.
    string(REGEX REPLACE "^(\\.\\\\\"[^\n]*\n)+" "" shared "${shared}")
    string(REPLACE "${line}\n" "\n${shared}" text "${text}")
  endforeach()
  cmake_path(RELATIVE_PATH page BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE copy)
  set(copy ${CMAKE_BINARY_DIR}/pages/${copy})
  file(WRITE ${copy} "${text}")
  set(${variable} ${copy} PARENT_SCOPE)
endfunction()
