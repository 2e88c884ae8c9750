# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The roots of Debian in which trees are built, for this machine or for another one: Debian 12's, but riscv64 needs Debian
# 13's. Sourced after common.bash, by scripts that run as root.

# shellcheck source=scripts/lib/roots.bash
. "${root:?}/scripts/lib/roots.bash"

# debian_name ARCH: prints Debian's name of the machine.
debian_name() {
  case $1 in
    aarch64) echo arm64 ;;
    ppc64le) echo ppc64el ;;
    *) echo "$1" ;;
  esac
}

# suite_for ARCH: prints the name of the Debian that has the machine.
suite_for() { if [ "$1" = riscv64 ]; then echo trixie; else echo bookworm; fi; }

# building_packages ARCH: prints the names of a root's packages. A package of headers is for every machine. cmocka is for the
# tests that tests/emulated/machine runs.
building_packages() {
  local name
  awk '$1 == "package" { print $2 }' scripts/lib/packages
  if [ "$1" = "$(uname -m)" ]; then
    awk '$1 == "build" { print $2 }' scripts/lib/packages
  else
    name=$(debian_name "$1")
    printf '%s\n' "crossbuild-essential-$name" cmake ninja-build pkgconf libexpected-dev libcli11-dev nlohmann-json3-dev \
      lib{ibverbs,rdmacm,isal,fmt,cmocka}-dev:"$name"
  fi
}

# in_building_root ARCH PROGRAM [ARG...]: runs a program of this tree in the root for that machine, with a compiler's cache.
in_building_root() {
  local arch=$1 program=$2 name=portable foreign='' place wanted
  shift 2
  [ "$arch" = "$(uname -m)" ] || { name=portable-$arch && foreign=$(debian_name "$arch"); }
  mapfile -t wanted < <(building_packages "$arch")
  cached_root "$name" "$(suite_for "$arch")" ccache "${wanted[@]}" && mkdir -p "$roots/ccache" || return 1
  shown=("$root" "$roots/ccache")
  in_root "$place" env PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DIR=/mnt/ccache ${SOURCE_DATE_EPOCH:+"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"} \
    "/mnt/${root##*/}/$program" "$@"
}
