/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/api/api.h"

#include <dat2/dat_ib_extensions.h>

uint64_t counter(DAT_HANDLE handle, int number) {
  DAT_UINT64 value = 0xa5;
  assert_ok(dat_query_counters(handle, number, &value, 0));
  return value;
}
