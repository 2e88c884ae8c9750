# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Watches the guests that start_guest began, and ends them.

# With two guests: the time that the other guest has after one command failed.
readonly grace_us=10000000
# A guest that has not started its command after this time is lost: emulation on a busy machine needs a few seconds.
readonly boot_limit_us=180000000

now_us() { now=${EPOCHREALTIME/[.,]/}; }

running() { kill -0 "$1" 2>/dev/null; }

# Waits a tenth of a second without starting a process.
tick() { read -rt 0.1 -u "$tick_fd" || true; }

# Ends the guests; harmless if they have ended already.
end_guests() {
  local guest pid
  for guest in "${!qemu_pid[@]}"; do
    for pid in "${qemu_pid[guest]}" "${out_pid[guest]}" "${err_pid[guest]}"; do
      if running "$pid"; then
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
      fi
    done
  done
  qemu_pid=() out_pid=() err_pid=()
}

# Lets a guest that has finished power off and its output drain, within five seconds.
settle() { # GUEST
  local waits=0 pid
  for pid in "${qemu_pid[$1]}" "${out_pid[$1]}" "${err_pid[$1]}"; do
    while running "$pid" && [ "$waits" -lt 50 ]; do
      waits=$((waits + 1))
      tick
    done
  done
}

# Checks one guest. Sets state: booting, running, ended (its command), or a verdict of watch_guests.
look_at() { # GUEST
  local control=$scratch/$1/control alive=no
  if running "${qemu_pid[$1]}"; then alive=yes; fi
  if [ -s "$control/code" ]; then
    state=ended
  elif [ -s "$control/failed" ]; then
    state=failed
  elif [ "$alive" = no ]; then
    if [ -s "$control/started" ]; then
      state=died
    elif wait "${qemu_pid[$1]}" 2>/dev/null; then
      state=lost-at-boot
    else
      state=qemu-failed
    fi
  elif [ -s "$control/started" ]; then
    state=running
  else
    state=booting
  fi
}

# True if our stdout or stderr was closed: a relay has ended before its guest.
is_unheard() { # GUEST
  if running "${out_pid[$1]}" && running "${err_pid[$1]}"; then return 1; fi
  # The relays end with QEMU, which may be ending just now.
  tick
  running "${qemu_pid[$1]}"
}

# Waits for the guests. Sets verdict and, where there is one, culprit: the guest that caused it.
#   finished      the commands ended, or one of them failed and the other one's grace is over
#   failed        a guest could not be set up
#   died          QEMU ended before the command did
#   lost-at-boot  the guest ended, or did nothing for long, before the command began
#   qemu-failed   QEMU itself refused
#   unheard       nobody reads our output any more
#   timed-out     --timeout
watch_guests() {
  local begin now state grace_end=0 ended
  now_us
  begin=$now
  while :; do
    now_us
    ended=0
    for ((culprit = 1; culprit <= guests; culprit++)); do
      look_at "$culprit"
      verdict=$state
      case $state in
      ended)
        ended=$((ended + 1))
        if [ "$grace_end" = 0 ] && [ "$(<"$scratch/$culprit/control/code")" != 0 ]; then
          grace_end=$((now + grace_us))
        fi
        ;;
      booting)
        verdict=lost-at-boot
        [ $((now - begin)) -lt "$boot_limit_us" ] || return 0
        ;;
      running)
        verdict=unheard
        ! is_unheard "$culprit" || return 0
        ;;
      *) return 0 ;;
      esac
    done
    verdict=finished
    if [ "$ended" = "$guests" ] || { [ "$grace_end" != 0 ] && [ "$now" -ge "$grace_end" ]; }; then return 0; fi
    verdict=timed-out
    if [ "$timeout" != 0 ] && [ $((now - begin)) -ge $((timeout * 1000000)) ]; then return 0; fi
    tick
  done
}
