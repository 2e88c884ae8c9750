/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* Linked before dapple-demo's calls: makes a program that forgets to sync after an RDMA Write. */
#include <dat2/udat.h>

DAT_RETURN __wrap_dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN count);

DAT_RETURN __wrap_dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  (void)ia;
  (void)segments;
  (void)count;
  return DAT_SUCCESS;
}
