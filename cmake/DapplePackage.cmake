# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Lets programs find an installed library: writes a file for pkg-config, and a component of find_package(dapple).
include(CMakePackageConfigHelpers)

set(DAPPLE_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/dapple)

# dapple_package(TARGET [PC name] [VERSION n.n.n] DESCRIPTION text [REQUIRES module...] [WITH target...])
#
# TARGET was made by dapple_shared(... PACKAGE). It becomes dapple::TARGET, in the component TARGET, together with the
# interface libraries WITH; and -lTARGET, in NAME.pc (by default TARGET.pc), with the modules that its headers need. VERSION is
# that of the interface, where it is not the project's.
function(dapple_package target)
  cmake_parse_arguments(arg "" "PC;VERSION;DESCRIPTION" "REQUIRES;WITH" ${ARGN})
  if(NOT arg_PC)
    set(arg_PC ${target})
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION ${PROJECT_VERSION})
  endif()
  get_target_property(output ${target} OUTPUT_NAME)
  string(REPLACE ";" ", " requires "${arg_REQUIRES}")
  # Relative to the prefix, so that an installation can be moved. A system's own must not name /usr/include in another way.
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  if(DAPPLE_PORTABLE)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE up)
    set(pc_prefix "\${pcfiledir}/${up}")
  endif()
  cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
  cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
  configure_file(${CMAKE_SOURCE_DIR}/cmake/library.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${arg_PC}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${arg_PC}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
  if(arg_WITH)
    install(TARGETS ${arg_WITH} EXPORT dapple-${target})
  endif()
  install(EXPORT dapple-${target} NAMESPACE dapple:: DESTINATION ${DAPPLE_CMAKE_FOLDER} COMPONENT dev)
  set_property(GLOBAL APPEND PROPERTY DAPPLE_COMPONENTS ${target})
endfunction()

# dapple_package_config(): writes the entry of find_package(dapple). Call it after every dapple_package.
function(dapple_package_config)
  get_property(components GLOBAL PROPERTY DAPPLE_COMPONENTS)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/dapple-config.cmake.in ${CMAKE_BINARY_DIR}/dapple-config.cmake @ONLY)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/dapple-config-version.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/dapple-config.cmake ${CMAKE_BINARY_DIR}/dapple-config-version.cmake
    DESTINATION ${DAPPLE_CMAKE_FOLDER} COMPONENT dev)
endfunction()
