# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# siw, the kernel's software iWARP, now and then leaves a client's first message unread, and both sides wait for ever; or it fails to
# answer a Read, and the connection is lost: docs/siw.md. The kernel says when, if it is asked. Sourced by what runs where the device
# is; on other devices these do nothing.

siw_control=/sys/kernel/debug/dynamic_debug/control
if [[ ${SOFTROCE_DEVICE:-} = siw* ]]; then
  [ -e "$siw_control" ] || mount -t debugfs debugfs /sys/kernel/debug
  # On a kernel without dynamic debugging nothing is repeated.
  if [ -w "$siw_control" ]; then
    printf '%s\n' 'module siw func siw_cm_llp_data_ready +p' 'module siw format "read.response failed" +p' |
      while read -r wanted; do echo "$wanted" >"$siw_control"; done
  fi
fi

# The last time it did. 7 is a connection that is made, whose data the function is not for; 14 is EFAULT.
siw_error() {
  [[ ${SOFTROCE_DEVICE:-} = siw* ]] &&
    dmesg | grep -E 'siw_cm_llp_data_ready: .*state: 7|rresp len: [0-9]+ != 0$|read.response failed: -14$' | tail -n 1
}

# siw_erred: whether it did since siw_mark.
siw_mark() { siw_marked=$(siw_error); }
siw_erred() { [ "$(siw_error)" != "$siw_marked" ]; }

# again_on_siw COMMAND...: its exit code; where it failed and siw erred, there are up to four more tries.
again_on_siw() {
  local tries code
  for tries in 1 2 3 4 5; do
    siw_mark
    "$@"
    code=$?
    if [ "$code" = 0 ] || ! siw_erred; then break; fi
    echo "siw erred in try $tries of: $1"
  done
  return "$code"
}
