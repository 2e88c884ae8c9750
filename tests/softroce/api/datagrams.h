/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The common parts of tests of datagram endpoints. */
#pragma once

/* clang-format off */
#include "tests/softroce/api/api.h"
/* clang-format on */
#include <dat2/dat_ib_extensions.h>

#define GRH 40U /* bytes of the routing header before a received datagram */

/* The contents of an event of datagrams. */
struct ud_event {
  DAT_EVENT event;
  const DAT_CONNECTION_EVENT_DATA* connection;
  const DAT_IB_EXTENSION_EVENT_DATA* extension;
};

/* The results of an exchange at its two ends. */
struct ud_pair {
  DAT_IB_ADDR_HANDLE to_passive;
  DAT_IB_ADDR_HANDLE to_active;
  DAT_CONTEXT active_cm;
  DAT_CONTEXT passive_cm;
};

DAT_EP_ATTR ud_attributes(void);
/* For cmocka: as set_up_ends, with datagram endpoints. */
int set_up_ud_ends(void** state);

void expect_ud(DAT_EVD_HANDLE evd, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type, struct ud_event* out);
DAT_CR_HANDLE take_ud_request(const struct fixture* f);
/* from connects, to accepts. */
struct ud_pair resolve_ud(struct fixture* f, struct end* from, struct end* to);
DAT_RETURN send_ud(DAT_EP_HANDLE ep, const DAT_LMR_TRIPLET* segment, const DAT_IB_ADDR_HANDLE* to, uint64_t number);
DAT_DTO_COMPLETION_EVENT_DATA expect_ud_dto(DAT_EVD_HANDLE evd, uint64_t number, DAT_IB_DTOS operation,
                                            DAT_DTO_COMPLETION_STATUS status);

#define UD_ENDS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_ud_ends, tear_down)
