# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Roots that scripts/lib/rdma-core makes, to run programs on the C library and the rdma-core in there. Sourced.

# show_in_root ROOT FOLDER...: the kernel's folders and these ones are in ROOT where they are here.
show_in_root() {
  local root=$1 folder
  shift
  for folder in /dev /sys /proc "$@"; do
    mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || return 1
  done
}

# lend_libraries ROOT BUILD PROGRAM...: what these programs and libraries of BUILD want and neither ROOT nor BUILD brings goes to
# the folder "host" in ROOT: the compiler's runtime of this machine, libfmt, cmocka.
lend_libraries() {
  local root=$1 build=$2 library
  shift 2
  for library in $(ldd "${@/#/$build/}" | awk '$3 ~ "^/" { print $3 }' | sort -u); do
    [ -e "$root/usr/lib/x86_64-linux-gnu/${library##*/}" ] || [ -e "$build/lib/${library##*/}" ] ||
      cp "$library" "$root/host/" || return 1
  done
}
