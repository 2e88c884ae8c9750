/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Additions of dapple's provider to DAT 2.0 and the InfiniBand extensions. The provider attribute of the same name
 * shows at run time whether a flag exists; other providers refuse the flag with DAT_INVALID_PARAMETER.
 */
#ifndef DAPPLE_DAT2_DAT_DAPPLE_EXTENSIONS_H
#define DAPPLE_DAT2_DAT_DAPPLE_EXTENSIONS_H

#include <dat2/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Names of provider attributes and transport attributes ---- */

/* "TRUE": dat_lmr_create() takes DAT_DAPPLE_MEM_PRIV_NONCOHERENT. */
#define DAT_DAPPLE_ATTR_NONCOHERENT_LMR "DAPPLE_NONCOHERENT_LMR"
/* "TRUE": dat_lmr_create() takes DAT_DAPPLE_MEM_PRIV_PERSISTENT. */
#define DAT_DAPPLE_ATTR_PERSISTENT_LMR "DAPPLE_PERSISTENT_LMR"

/* ---- Additions to the enumerations of dat.h ---- */

/*
 * For the privileges of dat_lmr_create(), in addition to others. They grant no access.
 *
 * NONCOHERENT means that the memory is not coherent between its users, although the device may be coherent. An example
 * is memory that hosts share over CXL.
 *
 * dat_lmr_create() cleans and invalidates the memory once, and both sync calls maintain caches for segments of the LMR,
 * with any value of lmr_sync_req. On a coherent device the provider does not maintain the buffers of the consumer's own
 * DTOs, because this host's device and CPU agree. Only the consumer knows when another host accesses the memory.
 *
 * DAT_MODEL_NOT_SUPPORTED: the CPU gives user space no instruction for it. See dat_dapple_noncoherent_lmr(3).
 *
 * PERSISTENT means that the memory is persistent. A sync call over segments of the LMR returns only when data that the
 * CPU, or a device through its caches, has written there will survive a loss of power, with any value of lmr_sync_req.
 *
 * DAT_MODEL_NOT_SUPPORTED: no instruction achieves this. See dat_dapple_persistent_lmr(3).
 */
typedef enum dat_dapple_mem_priv_flags {
  DAT_DAPPLE_MEM_PRIV_NONCOHERENT = 0x01000000,
  DAT_DAPPLE_MEM_PRIV_PERSISTENT = 0x02000000,
} DAT_DAPPLE_MEM_PRIV_FLAGS;

#ifdef __cplusplus
}
#endif

#endif
