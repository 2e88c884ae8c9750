# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Packages of another Debian release, unpacked in the cache and not installed. Sourced.

lib=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/cache.bash
. "$lib/cache.bash" || exit 1

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# begin_place NAME: sets `place` to NAME in the cache, and `new` to a folder beside it, which is removed at the end.
begin_place() {
  place=$cache/$1
  mkdir -p "$(dirname "$place")" || die "cannot make $place"
  new=$(mktemp -d "$place.XXXXXX") || die "cannot make a folder beside $place"
  trap 'rm -rf "$new"' EXIT
}

# finish_place FOLDER VERSION: moves the folder to `place`. If another process was faster, its copy is used.
finish_place() {
  echo "$2" >"$1/release" && chmod 755 "$1"
  mv -T "$1" "$place" 2>/dev/null || [ -e "$place/release" ] || die "cannot write $place"
}

# unpacked_of_suite NAME SUITE FINISH [--whole] PACKAGE...: sets `place` to NAME in the cache, which is like a root with
# these packages of that Debian release; with --whole it includes everything that they depend on. Its file "release"
# holds the version of the first package. FINISH is called with the folder before others see it.
unpacked_of_suite() {
  local suite=$2 finish=$3 whole=()
  place=$cache/$1
  [ ! -e "$place/release" ] || return 0
  begin_place "$1"
  shift 3
  [ "$1" != --whole ] || { whole=(--whole) && shift; }
  "$lib/debian" fetch --unpack "${whole[@]}" "$new" "$suite" "$@" || exit 1
  "$finish" "$new/root" || die "cannot write $new/root"
  finish_place "$new/root" "$(dpkg-deb -f "$new/debs/$1"_*.deb Version)"
}

# A FINISH that makes a root for chroot: in Debian 13 and later everything is in /usr, and another package brings the
# links.
make_root() {
  local folder
  for folder in lib lib64; do
    [ -e "$1/$folder" ] || ln -s "usr/$folder" "$1/$folder" || return 1
  done
  mkdir -p "$1"/{dev,proc,sys,tmp,host}
}

# A FINISH for packages with libpsm-infinipath1: makes the link of Debian's alternatives that its installation would make.
link_psm() {
  ln -s ../libpsm1/libpsm_infinipath.so.1.16 "$1/usr/lib/x86_64-linux-gnu/libpsm_infinipath.so.1"
}
