# shellcheck shell=bash
# shellcheck disable=SC2154  # those who source this set work
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# What our programs say, and end with, where nobody knows whether there is an RDMA device. Sourced with $work set to a folder.

# ends_with PATTERN_0 PATTERN_1 COMMAND...: it ends with 0 or 1, and says what the extended regular expression for that code matches.
# All that it says is in $work/said.
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

# info_tells COMMAND...: dapple-info, which shows a device or how to get one, and in any case how much memory may be locked.
info_tells() {
  ends_with '^DEVICE ' '^There is no RDMA device here' "$@" && grep -q '^Memory that may be locked' "$work/said"
}

# demo_tells COMMAND...: a pair of dapple-demo, which works or says in a few lines what is missing.
demo_tells() {
  ends_with 'sizes verified' 'no RDMA device|no provider for' "$@" &&
    { grep -q 'sizes verified' "$work/said" || [ "$(wc -l <"$work/said")" -le 3 ]; }
}

# devices_tell COMMAND...: dapple-devices.
devices_tell() { ends_with 'coherent|unknown|no RDMA' 'cannot (open|ask)' "$@"; }
