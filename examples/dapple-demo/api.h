/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The version of the API for which the program is built: 2.0, or 1.2 with -DDEMO_DAT_1_2. A program like this one needs
 * no other distinction.
 */
#pragma once

#ifdef DEMO_DAT_1_2
#include <dat/udat.h>

typedef DAT_VLEN segment_length;

static inline void set_remote_address(DAT_RMR_TRIPLET* remote, DAT_VADDR address) {
  remote->target_address = address;
}

static inline DAT_RETURN reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr);
}

#define LMR_CREATE(ia, type, where, length, pz, privileges, lmr, lmr_context, rmr_context, size, address) \
  dat_lmr_create(ia, type, where, length, pz, privileges, lmr, lmr_context, rmr_context, size, address)
#else
#include <dat2/udat.h>

typedef DAT_SEG_LENGTH segment_length;

static inline void set_remote_address(DAT_RMR_TRIPLET* remote, DAT_VADDR address) {
  remote->virtual_address = address;
}

static inline DAT_RETURN reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr, 0, NULL);
}

#define LMR_CREATE(ia, type, where, length, pz, privileges, lmr, lmr_context, rmr_context, size, address) \
  dat_lmr_create(ia, type, where, length, pz, privileges, DAT_VA_TYPE_VA, lmr, lmr_context, rmr_context, size, address)
#endif
