/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * Messages between two queue pairs of the first device, and a connection's address by rdma_cm, with the libibverbs and
 * librdmacm that the function's library is linked to. Returns 0, or prints the reason and returns 1.
 */
int ping_pong(void);
