# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# rping_ended CODE OUTPUT: true if a program with this exit code and output has succeeded. rping closes its event channel while its other
# thread reads it, on every device. If that thread is late, rping ends with this error instead of 0, after everything else has succeeded.
rping_ended() { [ "$1" = 0 ] || { [ "$1" != 124 ] && grep -q '^rdma_get_cm_event: Bad file descriptor' "$2"; }; }
