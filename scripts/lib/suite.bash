# shellcheck shell=bash
# shellcheck disable=SC2154  # softroce's parts set build_tools
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Packages of another Debian release, unpacked in the cache and not installed. It fetches them with apt, through the
# functions with which scripts/softroce fetches its kernels. Sourced.

for part in common kernel; do
  # shellcheck source=/dev/null
  . "$(dirname "${BASH_SOURCE[0]}")/../softroce.d/$part.bash" || exit 1
done

# unpacked_of_suite NAME SUITE FINISH [--whole] PACKAGE...: sets `place` to NAME in the cache, which is like a root with
# these packages of that Debian release; with --whole it includes everything that they depend on. Its file "release"
# holds the version of the first package. FINISH is called with the folder before others see it.
unpacked_of_suite() {
  local suite=$2 finish=$3 whole=no packages
  place=$(dirname "$(cache_dir)")/$1
  shift 3
  [ "$1" != --whole ] || { whole=yes && shift; }
  [ ! -e "$place/release" ] || return 0
  require_tools "$build_tools"
  mkdir -p "$(dirname "$place")" || die 1 "cannot make $place"
  new=$(mktemp -d "$place.XXXXXX") || die 1 "cannot make a folder beside $place"
  trap 'rm -rf "$new"' EXIT
  open_suite "$new" "$suite"
  say "fetching $1"
  packages=("$@")
  [ "$whole" = no ] || mapfile -t packages < <(APT_CONFIG=$new/apt/apt.conf apt-get -qq --no-install-recommends --print-uris \
    install "$@" 2>/dev/null | sed -nE "s/^'[^']*' ([^_]*)_.*/\1/p")
  [ "${#packages[@]}" -gt 0 ] || die 1 "apt cannot find the dependencies of $1"
  download_packages "$new" "${packages[@]}"
  unpack_debs "$new/debs" "$new/root"
  "$finish" "$new/root" || die 1 "cannot write $new/root"
  dpkg-deb -f "$new/debs/$1"_*.deb Version >"$new/root/release"
  chmod 755 "$new/root"
  # If another process was faster, its copy is used.
  mv -T "$new/root" "$place" 2>/dev/null || [ -e "$place/release" ] || die 1 "cannot write $place"
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
