/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* A fake libibverbs with the names of the release that FAKE_LEVEL selects. A map gives them their versions. */
#define SHOWN __attribute__((visibility("default")))

SHOWN void verbs_set_ops(void);
void verbs_set_ops(void) {}
SHOWN void ibv_query_device(void);
void ibv_query_device(void) {}

#if FAKE_LEVEL >= 36
SHOWN void ibv_query_qp_data_in_order(void);
void ibv_query_qp_data_in_order(void) {}
#endif
#if FAKE_LEVEL >= 62
SHOWN void ibv_query_port_speed(void);
void ibv_query_port_speed(void) {}
#endif
#if FAKE_LEVEL >= 64
SHOWN void ibv_alloc_buf(void);
void ibv_alloc_buf(void) {}
#endif
#if FAKE_LEVEL >= 65
SHOWN void ibv_create_comp_cntr(void);
void ibv_create_comp_cntr(void) {}
#endif
