# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Lets programs run in roots that scripts/lib/rdma-core makes, on their C library and rdma-core. Sourced.

# show_in_root ROOT FOLDER...: mounts the kernel's folders and these in ROOT, as far as they exist here.
show_in_root() {
  local root=$1 folder
  shift
  for folder in /dev /sys /proc "$@"; do
    mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || return 1
  done
}

# lend_libraries ROOT BUILD PROGRAM...: copies the libraries that these programs and libraries of BUILD need, and that
# neither ROOT nor BUILD has, to the folder "host" in ROOT: this machine's compiler runtime, libfmt, cmocka.
lend_libraries() {
  local root=$1 build=$2 library
  shift 2
  for library in $(ldd "${@/#/$build/}" | awk '$3 ~ "^/" { print $3 }' | sort -u); do
    [ -e "$root/usr/lib/x86_64-linux-gnu/${library##*/}" ] || [ -e "$build/lib/${library##*/}" ] ||
      cp "$library" "$root/host/" || return 1
  done
}
