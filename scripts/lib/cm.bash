# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# cm_listens PORT: true if a program listens at this port of the kernel's rdma_cm. The software device shows no listeners.
cm_listens() { rdma resource show cm_id 2>/dev/null | grep -q "LISTEN.*:$1 "; }
