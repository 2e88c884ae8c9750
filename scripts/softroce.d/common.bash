# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Messages, exit codes, the cache and its lock, and the check for tools.

# softroce's own exit codes; every other code is the command's.
readonly kExitUsage=2 kExitTimedOut=124 kExitGuestDied=125 kExitCannotStart=126

program=${0##*/}
say() { printf '%s: %s\n' "$program" "$*" >&2; }

die() { # CODE MESSAGE…
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# The folder with kernels for all users of this machine. `--prepare --system` fills it.
readonly system_cache=/var/cache/dapple

use_system_cache() {
  DAPPLE_CACHE=$system_cache
  umask 022
}

# The user's own folder.
cache_dir() {
  local dir=${DAPPLE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/dapple}/softroce
  case $dir in /*) printf '%s\n' "$dir" ;; *) printf '%s\n' "$PWD/$dir" ;; esac
}

# kernel_place KERNEL DEVICE: prints the folder of the kernel: the user's own, or the system's if that has everything
# for the device.
kernel_place() {
  local own system=$system_cache/softroce/$1 release
  own=$(cache_dir)/$1
  if [ ! -e "$own/release" ] && { read -r release <"$system/release"; } 2>/dev/null &&
    { [ "$2" != siw ] || [ -e "$system/tree/lib/modules/$release/updates/siw.ko" ]; }; then
    own=$system
  fi
  printf '%s\n' "$own"
}

# Every program that softroce runs, as "tool package"; a tool with a slash is a file.
readonly run_tools='qemu-system-x86_64 qemu-system-x86
/usr/share/qemu/qboot.rom qemu-system-data
rdma iproute2
setpriv util-linux
flock util-linux
sha256sum coreutils
perl perl-base'
readonly build_tools='apt-get apt
apt-config apt
dpkg-deb dpkg
/usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring
depmod kmod
modprobe kmod
xz xz-utils
zstd zstd'

# Packages that some Debian systems lack; all systems have the other packages of the two lists.
needed_packages() {
  printf '%s\n' "$run_tools" "$build_tools" 'busybox busybox-static' 'librxe-rdmav34.so ibverbs-providers' |
    sed 's/.* //' | grep -vxE 'apt|dpkg|coreutils|perl-base|util-linux' | sort -u
}

# Prints one line for each missing tool of LIST, then exits.
require_tools() { # LIST
  local tool package missing=0
  while read -r tool package; do
    case $tool in
    /*) [ ! -r "$tool" ] || continue ;;
    *) ! type -P "$tool" >/dev/null || continue ;;
    esac
    say "$tool is missing; to install it: apt-get install $package"
    missing=1
  done <<<"$1"
  [ "$missing" = 0 ] || exit "$kExitCannotStart"
}

# QEMU needs /proc to make or change files for a guest. A bare chroot may lack it, and much works without it.
check_proc() {
  [ ! -e /proc/self/fd ] || return 0
  if [ "${#shares[@]}$guests" != 01 ]; then
    die "$kExitCannotStart" '--share and --guests 2 need /proc; to mount it: mount -t proc proc /proc'
  fi
  say 'without /proc mounted here, the command can write to /tmp, /run and /dev/shm only'
}

# The guest's first stage has no libraries, so busybox must be static.
static_busybox() {
  local path
  for path in /usr/bin/busybox /bin/busybox "$(command -v busybox || true)"; do
    [ -x "$path" ] || continue
    head -c 4096 "$path" | grep -q /ld- || {
      printf '%s\n' "$path"
      return
    }
  done
  die "$kExitCannotStart" 'a static busybox is missing; to install it: apt-get install busybox-static'
}

# Runs FUNCTION while holding the lock NAME of the cache.
with_lock() { # NAME FUNCTION [ARG…]
  local name=$1 fd
  shift
  mkdir -p "$(cache_dir)" 2>/dev/null
  { exec {fd}>"$(cache_dir)/$name.lock"; } 2>/dev/null || die "$kExitCannotStart" \
    "cannot write to $(cache_dir); DAPPLE_CACHE names another folder, and root can run '$program --prepare --system' for all users"
  flock -n "$fd" || {
    say "waiting for another softroce that prepares $name"
    flock "$fd"
  }
  "$@"
  exec {fd}>&-
}
