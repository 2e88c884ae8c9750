# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The roots of Debian 12 in which the portable files are built, for this machine or for another one. Sourced after
# common.bash, by scripts that run as root.

# shellcheck source=scripts/lib/roots.bash
. "${root:?}/scripts/lib/roots.bash"

# building_packages ARCH: prints the names of a root's packages. Debian calls aarch64 arm64. A package of headers is for every
# machine. cmocka is for the tests that tests/emulated/machine runs.
building_packages() {
  awk '$1 == "package" { print $2 }' scripts/lib/packages
  if [ "$1" = "$(uname -m)" ]; then
    awk '$1 == "build" { print $2 }' scripts/lib/packages
  else
    printf '%s\n' crossbuild-essential-arm64 cmake ninja-build pkgconf libexpected-dev libcli11-dev nlohmann-json3-dev \
      lib{ibverbs,rdmacm,isal,fmt,cmocka}-dev:arm64
  fi
}

# in_building_root ARCH PROGRAM [ARG...]: runs a program of this tree in the root for that machine, with a compiler's cache.
in_building_root() {
  local arch=$1 program=$2 name=portable foreign='' place wanted
  shift 2
  [ "$arch" = "$(uname -m)" ] || { name=portable-$arch && foreign=arm64; }
  mapfile -t wanted < <(building_packages "$arch")
  cached_root "$name" bookworm ccache "${wanted[@]}" && mkdir -p "$roots/ccache" || return 1
  shown=("$root" "$roots/ccache")
  in_root "$place" env PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DIR=/mnt/ccache ${SOURCE_DATE_EPOCH:+"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"} \
    "/mnt/${root##*/}/$program" "$@"
}
