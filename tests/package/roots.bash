# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154,SC2317  # the parts share their variables; cached_root calls what stands in for mmdebstrap
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Tests the roots that the other parts use: their age, and the end of all processes in them.

# root_is new|old SUITE DAYS there|gone: checks the result of cached_root for a root of that age, with an archive or
# without one.
root_is() (
  archive=there roots=$work/roots logs=$work
  write_private_apt() { mkdir -p "$1" && echo 'Acquire::Nothing "";' >"$1/apt.conf"; }
  mmdebstrap() { [ "$archive" = there ] && mkdir -p "$new/root/var/cache/apt/archives" && touch "$new/root/new"; }
  rm -rf "$roots"
  cached_root aged "$2" package || return 1
  mv "$place/new" "$place/old" && touch -d "$3 days ago" "$place/complete" && archive=$4
  cached_root aged "$2" package && [ -e "$place/complete" ] && [ -e "$place/$1" ] || return 1
  [ "$(ls "$roots")" = "${place##*/}" ] || { ls -l "$roots" && return 1; }
)

no_root() (
  roots=$work/roots logs=$work
  write_private_apt() { mkdir -p "$1" && echo 'Acquire::Nothing "";' >"$1/apt.conf"; }
  mmdebstrap() { false; }
  rm -rf "$roots"
  ! cached_root aged sid package
)

# faketime names its resources by its process id, and two processes with the same id would collide.
shm_is_its_own() {
  inside touch /dev/shm/dapple-test && [ ! -e /dev/shm/dapple-test ] || { rm -f /dev/shm/dapple-test && return 1; }
}

# signal_ends SIGNAL CODE: the signal must end a script together with its command in a root, which itself ignores
# signals.
signal_ends() {
  local started=$SECONDS code
  rm -f "$here/opt/went-on"
  # shellcheck disable=SC2016  # for the inner shell
  timeout --preserve-status -s "$1" 2 env --default-signal="$1" bash -c '
    root=$1 here=$2
    . "$root/scripts/lib/roots.bash"
    in_root "$here" sh -c "trap \"\" INT TERM; sleep 10; touch /opt/went-on"
    touch "$here/opt/went-on"' signalled "$root" "$here"
  code=$?
  [ "$code" = "$2" ] && [ "$((SECONDS - started))" -lt 8 ] || { echo "it ended with $code, after $((SECONDS - started)) s" && return 1; }
  sleep 10
  [ ! -e "$here/opt/went-on" ] || { echo "what it ran in a root went on" && return 1; }
}

test_roots() {
  check "sid's root of two days serves" root_is old sid 2 there
  check "one of four days is made anew" root_is new sid 4 there
  check "without an archive it serves" root_is old sid 4 gone
  check "bookworm's of four days serves" root_is old bookworm 4 there
  check "one of 31 days is made anew" root_is new bookworm 31 there
  check "without an archive there is no first one" no_root
  fresh
  check "its /dev/shm is its own" shm_is_its_own
  check "^C ends a script and what it runs in a root" signal_ends INT 130
  check "SIGTERM does, too" signal_ends TERM 143
}
