# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Runs the guests to their end and finds the exit code.

readonly console_lines=30

# Prints the end of a guest's console on stderr, without the terminal's control characters. A long stack trace may push
# the reason of a panic out of it; then that comes first.
show_console() { # GUEST
  local console=$scratch/$1/console
  [ -s "$console" ] || return 0
  say "the end of guest $1's console:"
  {
    head -n -"$console_lines" "$console" | grep -aE 'Kernel panic|BUG:|Oops' | head -n 5
    tail -n "$console_lines" "$console"
  } | tr -d '\000-\010\013-\037' >&2
}

begin_guests() {
  local waits=0
  rm -rf "${scratch:?}"/{1,2,shared,wire}
  mkdir "$scratch/shared"
  write_control "$scratch/1/control" 1 "${command1[@]}"
  start_guest 1
  [ "$guests" = 2 ] || return 0
  # The QEMU of guest 1 makes the socket that is the wire.
  while [ ! -S "$scratch/wire" ] && running "${qemu_pid[1]}" && [ "$waits" -lt 300 ]; do
    waits=$((waits + 1))
    tick
  done
  write_control "$scratch/2/control" 2 "${command2[@]}"
  start_guest 2
}

# True if starting again is safe: no command has begun.
may_try_again() { [ ! -s "$scratch/1/control/started" ] && [ ! -s "$scratch/2/control/started" ]; }

# The first exit code other than 0 of the guests whose command ended.
finish_with_codes() {
  local guest code result=0
  for ((guest = 1; guest <= guests; guest++)); do
    if [ -s "$scratch/$guest/control/code" ]; then
      settle "$guest"
      code=$(<"$scratch/$guest/control/code")
      [ "$result" != 0 ] || result=$code
    else
      say "guest $guest was still running when the other one had failed, and was ended"
    fi
  done
  end_guests
  exit "$result"
}

run_guests() {
  local guest
  begin_guests
  watch_guests
  # Under emulation a kernel is rarely lost at boot.
  if [ "$verdict" = lost-at-boot ] && may_try_again; then
    end_guests
    say "guest $culprit was lost at boot; trying once more"
    begin_guests
    watch_guests
  fi
  case $verdict in
  finished) finish_with_codes ;;
  failed)
    end_guests
    show_console "$culprit"
    die "$kExitCannotStart" "guest $culprit: $(<"$scratch/$culprit/control/failed")"
    ;;
  # The exit code of a command that writes to a closed pipe: 128 + SIGPIPE.
  unheard)
    end_guests
    exit 141
    ;;
  timed-out)
    end_guests
    for ((guest = 1; guest <= guests; guest++)); do show_console "$guest"; done
    die "$kExitTimedOut" "timed out after $timeout s"
    ;;
  qemu-failed)
    end_guests
    die "$kExitCannotStart" "QEMU failed: $(tail -n 1 "$scratch/$culprit/qemu.log")"
    ;;
  lost-at-boot | died)
    settle "$culprit"
    end_guests
    cat "$scratch/$culprit/qemu.log" >&2
    show_console "$culprit"
    die "$kExitGuestDied" "guest $culprit died before its command ended"
    ;;
  esac
}
