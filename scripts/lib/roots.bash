# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Bare Debian systems for building and testing packages: roots that mmdebstrap makes from this machine's archive, kept
# in the cache. Sourced after common.bash, by scripts that run as root.

# shellcheck source=scripts/lib/common.bash
. "${root:?}/scripts/lib/common.bash"
# shellcheck source=scripts/lib/cache.bash
. "$root/scripts/lib/cache.bash"

# A signal ends the script, not only the command that it waits for, and does so at once even if the command runs in a
# root.
trap 'exit 130' INT
trap 'exit 143' TERM

roots=$cache/roots
foreign=

# check_privileges: ends the script if this machine lets no one enter a root.
check_privileges() {
  local why
  [ "$(id -u)" = 0 ] || die "only the user root can make and enter a root file system"
  why=$(unshare --mount --pid --fork sh -c 'mount --make-rprivate / && mount -t proc proc /proc' 2>&1) ||
    die "a root file system needs its own mount and PID namespaces, which this machine does not allow (in a container: --privileged): $why"
}

# write_private_apt FOLDER SUITE ARCHITECTURE[,ARCHITECTURE]: writes apt.conf and sources.list for that release alone.
write_private_apt() { "$root/scripts/lib/debian" configure "$@"; }

# cached_root NAME SUITE PACKAGE...: sets `place` to a root of that Debian release with these packages, which must not
# be changed. If `foreign` names another architecture, its packages can be installed in the root, too. mmdebstrap's
# variant is $variant, by default apt. With `extract` the root has the packages of $foreign alone, and their scripts have
# not run, so that no emulator is needed. An old root is made again if the archive is reachable, because the packages that
# its lists name soon disappear, on sid first. One process at a time makes roots of a name.
cached_root() {
  local name=$1 suite=$2 packages days=3
  shift 2
  packages=$(printf '%s\n' "$@" | sort -u | paste -sd,)
  place=$roots/$suite-$name-$(sha256sum <<<"$packages" | head -c 8)
  [ "$suite" != bookworm ] || days=30
  mkdir -p "$roots" || return 1
  # Runs that were killed left these.
  find "$roots" -maxdepth 1 \( -name 'work.??????' -o -name 'ci.??????' \) -mtime +0 -exec rm -rf {} +
  is_fresh "$place" "$days" || {
    flock -n 9 || { say "waiting for another program that makes a root" && flock 9; } || return 1
    is_fresh "$place" "$days" || make_cached_root "$name" "$suite" "$packages"
  } 9>"$roots/.$suite-$name.lock"
}

# is_fresh PLACE DAYS: succeeds if the root is complete and not older.
is_fresh() { [ -e "$1/complete" ] && [ -z "$(find "$1/complete" -mmin "+$(($2 * 1440))")" ]; }

# make_cached_root NAME SUITE PACKAGE,...: the part of cached_root that makes `place`.
make_cached_root() {
  local name=$1 suite=$2 packages=$3 new=$place.new old architectures=amd64${foreign:+,$foreign} merged=()
  if [ "${variant-}" = extract ]; then
    architectures=$foreign
    # shellcheck disable=SC2016  # for the shell that mmdebstrap starts
    merged=(--setup-hook='for folder in bin lib sbin; do mkdir -p "$1/usr/$folder" && ln -s "usr/$folder" "$1/$folder"; done')
  fi
  say "making a root of Debian's $suite with ${packages:-nothing more}"
  rm -rf "$new"
  # The lists stay, so that packages can be installed; https needs certificates for that.
  mkdir "$new" && write_private_apt "$new/apt" "$suite" "$architectures" &&
    { ! grep -q ' https:' "$new/apt/sources.list" || packages+=${packages:+,}ca-certificates; } &&
    grep '^Acquire::' "$new/apt/apt.conf" >"$new/apt/options" &&
    logged "root-$suite-$name" mmdebstrap --mode=root --variant="${variant:-apt}" --architectures="$architectures" --dpkgopt=force-unsafe-io "${merged[@]}" \
      ${packages:+--include="$packages"} --aptopt="$new/apt/options" \
      --skip=cleanup/apt/lists,cleanup/apt/cache "$suite" "$new/root" "$new/apt/sources.list" || {
    rm -rf "$new"
    [ -e "$place/complete" ] && say "using the old root of $(date -r "$place/complete" +%F)"
    return
  }
  rm -rf "$new/root/var/cache/apt/archives"/*.deb
  mkdir -p "$new/root/var/cache/apt/archives/partial"
  # The hash has eight letters: another root's name may begin with this one's.
  for old in "$roots/$suite-$name"-????????{,.new}; do [ "$old" = "$new" ] || rm -rf "$old"; done
  touch "$new/root/complete" && mv -T "$new/root" "$place" || return 1
  rm -rf "$new"
}

# copy_of ROOT PLACE: makes a copy that may be changed.
copy_of() { rm -rf "$2" && mkdir -p "$(dirname "$2")" && cp -a --reflink=auto "$1" "$2"; }

# in_root ROOT COMMAND...: runs the command there as in a container, with processes and mounts of its own. Packages that
# apt fetches are kept for other roots of the suite. The folders in the array `shown` appear below /mnt. The command
# runs in the background, where bash obeys signals, and ends with this shell: process 1 of a namespace ignores ^C.
shown=() entered=
in_root() {
  local place=$1 kept folder code
  shift
  kept=$roots/archives-$(. "$place/etc/os-release" && echo "${VERSION_CODENAME:-sid}")
  mkdir -p "$kept/partial" "$place/mnt"
  for folder in "${shown[@]}"; do mkdir -p "$place/mnt/${folder##*/}"; done
  # The root uses this machine's name resolution.
  cp -L /etc/resolv.conf "$place/etc/resolv.conf" 2>/dev/null
  # shellcheck disable=SC2016  # for the inner shell
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --uts bash -c '
    place=$1 kept=$2 count=$3
    shift 3
    mount --make-rprivate / && mount --bind "$place" "$place" &&
      mount -t proc proc "$place/proc" && mount --rbind /dev "$place/dev" &&
      mount --rbind /sys "$place/sys" &&
      mount -t tmpfs -o mode=1777 tmpfs "$place/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$place/tmp" &&
      mount --bind "$kept" "$place/var/cache/apt/archives" || exit 125
    while [ "$count" -gt 0 ]; do
      mount --bind "$1" "$place/mnt/${1##*/}" || exit 125
      shift
      count=$((count - 1))
    done
    # As switch_root does it: chroot alone leaves a root that is no mount point, and in which no user namespace can be made.
    cd "$place" && mount --move "$place" / || exit 125
    proxies=()
    for name in http_proxy https_proxy ftp_proxy no_proxy; do [ -z "${!name-}" ] || proxies+=("$name=${!name}"); done
    exec env --default-signal=INT,QUIT -i "${proxies[@]}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive chroot . "$@"
  ' in_root "$place" "$kept" "${#shown[@]}" "${shown[@]}" "$@" <&0 &
  entered=$!
  wait "$entered"
  code=$?
  entered=
  return "$code"
}

# clear_away FOLDER...: ends processes that still run in a root, then removes the folders. The second attempt removes
# files that a process made at its end.
clear_away() {
  [ -z "$entered" ] || { kill -KILL "$entered" && wait "$entered"; } 2>/dev/null
  rm -rf "$@" 2>/dev/null || { sleep 1 && rm -rf "$@"; }
}
