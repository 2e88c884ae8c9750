# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The differences between the devices on which the guests' scripts run. Sourced.
# shellcheck disable=SC2034

# The option of dapple-run for programs that use the kernel's device; empty for the software device.
kernels_device=(--no-device)
[[ ${SOFTROCE_DEVICE:-} != dapple* ]] || kernels_device=()

# bring_runtime PROGRAM: sets `stock`, the words before a program without a sanitizer that runs without dapple-run. In a
# sanitized build the plug-in needs the runtime of PROGRAM, which belongs to that build.
bring_runtime() {
  local runtime
  runtime=$(ldd "$1" | awk '$1 ~ /^lib[at]san/ { print $3 }')
  stock=()
  [ -z "$runtime" ] || stock=(env "LD_PRELOAD=${LD_PRELOAD:-}:$runtime" "ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0"
    "TSAN_OPTIONS=${TSAN_OPTIONS:-}:ignore_noninstrumented_modules=1:die_after_fork=0")
}
