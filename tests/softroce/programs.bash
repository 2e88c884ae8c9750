# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The common parts of soft-device-guest and soft-two-guests-guest: their list of programs, and the verdict on a run.

checks=0 failures=0

# librdmacm_programs FUNCTION WHERE SERVER-SIDE CLIENT-SIDE ADDRESS: calls FUNCTION NAME SERVER-SIDE CLIENT-SIDE SERVER-COMMAND
# CLIENT-COMMAND for each of librdmacm's programs. ADDRESS is the server's.
librdmacm_programs() {
  "$1" "rping, $2" "$3" "$4" "rping -s -a $5 -C 20 -V" "rping -c -a $5 -C 20 -V"
  "$1" "ucmatose, $2" "$3" "$4" "ucmatose -b $5" "ucmatose -s $5"
  "$1" "udaddy, $2" "$3" "$4" "udaddy -b $5" "udaddy -s $5"
  "$1" "cmtime, $2" "$3" "$4" "cmtime -b $5 -c 50" "cmtime -s $5 -c 50"
}

# perftest_programs: likewise for perftest with connections of librdmacm.
perftest_programs() {
  "$1" "ib_write_bw -R, $2" "$3" "$4" 'ib_write_bw -R -F -n 100 -s 65536' "ib_write_bw -R -F -n 100 -s 65536 $5"
  "$1" "ib_send_lat -R, $2" "$3" "$4" 'ib_send_lat -R -F -n 100' "ib_send_lat -R -F -n 100 $5"
}

# was_refused FILE: true if this output of a client says that nobody listened yet. cmtime says so and exits with 0.
was_refused() { grep -qiE 'reject|refused|unreachable|NON_PEER|Unexpected CM event|no server listens' "$1"; }

# lost_its_channel FILE: true if rping's client has closed its event channel while its other thread was about to read from it. That
# thread then ends the program with 1 although its pings have succeeded. This is a defect of rping.
lost_its_channel() { [ "$(tail -n 2 "$1")" = $'client DISCONNECT EVENT...\nrdma_get_cm_event: Bad file descriptor' ]; }

# connect FILE COMMAND...: runs a client with its output in the file. Nothing shows from outside that a server of librdmacm listens: a
# client that comes too early is refused, and tries again. perftest -R connects twice, and its server does not listen in between. Sets
# code to 0, to 1, or, if a client of perftest -R was refused or rping has lost its channel, to "again": then both ends must start again.
# shellcheck disable=SC2034  # code is for the caller
connect() {
  local out=$1 tries
  shift
  code=1
  for ((tries = 0; tries < 20; tries++)); do
    sleep 0.5
    if ("$@") >"$out" 2>&1 && ! was_refused "$out"; then
      code=0
      return
    fi
    if { [[ " $* " == *' -R '* ]] && grep -q 'CM event' "$out"; } || lost_its_channel "$out"; then
      code=again
      return
    fi
    was_refused "$out" || return
  done
}

# judge NAME CODE FILE...: counts and prints the verdict on a run with this exit code and these outputs. Some programs print their
# errors and exit with 0.
judge() {
  local file
  checks=$((checks + 1))
  if [ "$2" = 0 ] && ! grep -qiE 'fail|error|couldn|mismatch|invalid (argument|data)' "${@:3}"; then
    echo "passed: $1"
    return
  fi
  failures=$((failures + 1))
  echo "FAILED: $1, exit code $2"
  for file in "${@:3}"; do sed "s/^/  ${file##*/}: /" "$file"; done
}
