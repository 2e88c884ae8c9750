# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The differences between the devices on which the guests' scripts run. Sourced.
# shellcheck disable=SC2034

# The option of dapple-run for programs that use the kernel's device; empty for the software device.
kernels_device=(--no-device)
[[ ${SOFTROCE_DEVICE:-} != dapple* ]] || kernels_device=()
