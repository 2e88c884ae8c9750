# shellcheck shell=bash
# shellcheck disable=SC2154  # those who source this set work
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Checks the output and the exit codes of our programs on machines with or without an RDMA device. Sourced with $work
# set to a folder.

# ends_with PATTERN_0 PATTERN_1 COMMAND...: the command must end with 0 or 1, and its output match the extended regular
# expression for that code. All output is in $work/said.
ends_with() {
  local patterns=("$1" "$2") code=0
  shift 2
  "$@" >"$work/said" 2>&1 || code=$?
  if [ "$code" -gt 1 ] || ! grep -aqE -- "${patterns[code]}" "$work/said"; then
    cat "$work/said"
    echo "it ended with $code: $*"
    return 1
  fi
}

# info_tells COMMAND...: dapple-info must show a device or how to get one, and in any case the limit of locked memory.
info_tells() {
  ends_with '^DEVICE ' '^There is no RDMA device here' "$@" && grep -q '^Memory that may be locked' "$work/said"
}

# demo_tells COMMAND...: a pair of dapple-demo must work, or name the missing part in a few lines.
demo_tells() {
  ends_with 'sizes verified' 'no RDMA device|no provider for' "$@" &&
    { grep -q 'sizes verified' "$work/said" || [ "$(wc -l <"$work/said")" -le 3 ]; }
}

# devices_tell COMMAND...: checks dapple-devices.
devices_tell() { ends_with 'coherent|unknown|no RDMA' 'cannot (open|ask)' "$@"; }
