# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# siw, the kernel's software iWARP, sometimes leaves a client's first message unread, and both sides wait for ever. It may also lose the
# connection, because it does not answer a Read or loses its place in the TCP stream, or before it reads the peer's answer:
# docs/siw.md. If asked to, the kernel logs these events. Sourced by scripts that run where the device is; on other devices these functions do nothing.

siw_events='siw_cm_llp_data_ready: .*state: 7|rresp len: [0-9]+ != 0$|read.response failed: -14$'
siw_events+='|siw_cm_work_handler: .*work type: 4, state 6'
siw_events+='|siw: (received (ddp|rdmap) version unsupported|received unknown packet type|packet intersection)'
siw_control=/sys/kernel/debug/dynamic_debug/control
if [[ ${SOFTROCE_DEVICE:-} = siw* ]]; then
  [ -e "$siw_control" ] || mount -t debugfs debugfs /sys/kernel/debug
  # Without dynamic debugging in the kernel nothing is repeated.
  if [ -w "$siw_control" ]; then
    printf '%s\n' 'module siw func siw_cm_llp_data_ready +p' 'module siw format "read.response failed" +p' \
      'module siw func siw_cm_work_handler +p' |
      while read -r wanted; do echo "$wanted" >"$siw_control"; done
  fi
fi

# Prints the kernel's line about the last such event. State 7 is RDMA mode: the connection has just been made, and its
# data is not for this function. 14 is EFAULT. The end of the stream is work 4, and in state 6 an answer is awaited.
siw_error() {
  [[ ${SOFTROCE_DEVICE:-} = siw* ]] &&
    dmesg | grep -E "$siw_events" | tail -n 1
}

# siw_erred: true if the kernel has logged such an event since siw_mark.
siw_mark() { siw_marked=$(siw_error); }
siw_erred() { [ "$(siw_error)" != "$siw_marked" ]; }

# again_on_siw COMMAND...: runs the command and returns its exit code. If it fails and siw has erred, the function
# repeats it up to four times.
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
