/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/* The API for which a test is built: 2.0, whose names the tests use, or 1.2, where these names stand for 1.2's. */
#if defined(DAPPLE_DAT_MAJOR) && DAPPLE_DAT_MAJOR == 1
#include <dat/dat_registry.h>
#include <dat/udat.h>

#define FOR_DAT_12 1
#define ONLY_12(...) __VA_ARGS__
#define ONLY_20(...)
#define DAT_VERSION 1, 2 /* two arguments of dat_ia_openv() */

typedef DAT_VLEN DAT_SEG_LENGTH;
/* 1.2 has only the first of them. */
typedef enum { DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB } DAT_VA_TYPE;
/* 1.2's completions do not name the operation. */
typedef enum { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ, DAT_DTO_RECEIVE } DAT_DTOS;

#define dat_lmr_create(ia, type, region, length, pz, privileges, va_type, lmr, lmr_context, rmr_context, size, \
                       address)                                                                                \
  dat_lmr_create(ia, type, region, length, pz, privileges, lmr, lmr_context, rmr_context, size, address)
#define dat_cr_reject(cr, size, data) dat_cr_reject(cr)

static inline DAT_LMR_TRIPLET lmr_triplet(DAT_VADDR at, DAT_VLEN length, DAT_LMR_CONTEXT context) {
  DAT_LMR_TRIPLET triplet;
  triplet.lmr_context = context;
  triplet.pad = 0xa5a5a5a5;
  triplet.virtual_address = at;
  triplet.segment_length = length;
  return triplet;
}
static inline DAT_RMR_TRIPLET rmr_triplet(DAT_VADDR at, DAT_VLEN length, DAT_RMR_CONTEXT context) {
  DAT_RMR_TRIPLET triplet;
  triplet.rmr_context = context;
  triplet.pad = 0xa5a5a5a5;
  triplet.target_address = at;
  triplet.segment_length = length;
  return triplet;
}
#else
#include <dat2/udat.h>
/* The original's headers need udat.h first. */
#include <dat2/dat_registry.h>

#define FOR_DAT_12 0
#define ONLY_12(...)
#define ONLY_20(...) __VA_ARGS__
#define DAT_VERSION 2, 0

static inline DAT_LMR_TRIPLET lmr_triplet(DAT_VADDR at, DAT_VLEN length, DAT_LMR_CONTEXT context) {
  DAT_LMR_TRIPLET triplet;
  triplet.virtual_address = at;
  triplet.segment_length = (DAT_SEG_LENGTH)length;
  triplet.lmr_context = context;
  return triplet;
}
static inline DAT_RMR_TRIPLET rmr_triplet(DAT_VADDR at, DAT_VLEN length, DAT_RMR_CONTEXT context) {
  DAT_RMR_TRIPLET triplet;
  triplet.virtual_address = at;
  triplet.segment_length = (DAT_SEG_LENGTH)length;
  triplet.rmr_context = context;
  return triplet;
}
#endif
