# shellcheck shell=bash
# shellcheck disable=SC2154  # the callers set build and original
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# One end of a run of peers: a registry and a provider, each ours or the original, and a program that uses them. The
# callers set $build (ours, in lib and bin) and $original (like a root folder, the original), and may set $root, another
# root to run in.

# shellcheck source=tests/softroce/root.bash
. "$(dirname "${BASH_SOURCE[0]}")/root.bash"
work=$(mktemp -d)

# A program that takes longer has failed.
time_limit_s=300

folder_of() { if [ "$1" = n ]; then echo "$build/lib"; else echo "$original/usr/lib/x86_64-linux-gnu"; fi; }

# prepare_side SIDE: makes a folder with only that libdat2, and a dat.conf that names that provider.
prepare_side() {
  local side=$work/$1 registry provider
  [ ! -d "$side" ] || return 0
  registry=$(folder_of "${1:0:1}")/libdat2.so.2
  provider=$(folder_of "${1:1:1}")/libdaplofa.so.2
  if ! [[ -e $registry && -e $provider ]]; then
    echo "peers: $registry or $provider is missing"
    exit 1
  fi
  mkdir "$side"
  ln -s "$registry" "$side/"
  printf 'ofa-v2-rxe u2.0 nonthreadsafe default %s dapl.2.0 "d0 0" ""\n' "$provider" >"$side/dat.conf"
}

# The programs' folders in $root, and the files that they need there.
prepare_root() {
  show_in_root "$root" /tmp "$build" "$original" &&
    lend_libraries "$root" "$build" lib/libdaplofa.so.2 bin/dapple-test &&
    mkdir -p "$root/usr/bin" && cp /usr/bin/rping "$root/usr/bin/" && echo "rdma-core $(<"$root/release")"
}

# become SIDE PROGRAM ARGUMENTS...: replaces the caller, a subshell, by the program. A new provider may need other
# libraries of ours.
become() {
  local side=$work/$1 change=()
  prepare_side "$1"
  shift
  export DAT_OVERRIDE=$side/dat.conf LD_LIBRARY_PATH=$side:$build/lib:/host
  [ -z "${root:-}" ] || change=(chroot "$root")
  exec timeout "$time_limit_s" "${change[@]}" "$@" 2>&1
}
