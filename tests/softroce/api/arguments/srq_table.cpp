// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shared receive queues.
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

DAT_SRQ_ATTR right = {16, 2, 0};
DAT_SRQ_ATTR none = {0, 2, 0};
DAT_SRQ_ATTR negative = {-1, 2, 0};
DAT_SRQ_ATTR huge = {INT32_MAX, 2, 0};
DAT_SRQ_ATTR negative_iov = {16, -1, 0};
DAT_SRQ_ATTR huge_iov = {16, INT32_MAX, 0};
DAT_SRQ_ATTR negative_low = {16, 2, -1};
DAT_SRQ_ATTR low_above_all = {16, 2, 17};
DAT_SRQ_HANDLE made;
DAT_SRQ_PARAM param;
DAT_LMR_TRIPLET iov[4];

}  // namespace

void add_srqs(Table& t) {
  iov[0] = lmr_triplet(reinterpret_cast<DAT_VADDR>(t.w.f.memory), 100, t.w.f.lmr_context);
  t.add(FUNCTION(dat_srq_create, {t.self(kIa), t.further(kPz),
                                  needed(&right)
                                      .also("no receives", &none)
                                      .also("a negative number", &negative)
                                      .also("more than the device has", &huge)
                                      .also("negative segments", &negative_iov)
                                      .also("more segments than the device has", &huge_iov)
                                      .also("a negative watermark", &negative_low)
                                      .also("a watermark above the size", &low_above_all),
                                  needed(&made)}));
  t.add(FUNCTION(dat_srq_query, {t.self(kSrq), mask(DAT_SRQ_FIELD_ALL), needed(&param)}));
  t.add(FUNCTION(dat_srq_post_recv,
                 {t.self(kSrq), good(1).also("negative", -1).also("more than it has", 3).also("huge", INT32_MAX),
                  needed(&iov[0]), any(1)}));
  t.add(FUNCTION(dat_srq_set_lw,
                 {t.self(kSrq), good(0).also("negative", -1).also("above the size", 17).also("huge", INT32_MAX)}));
  t.add(FUNCTION(dat_srq_resize, {t.self(kSrq), good(16).also("0", 0).also("negative", -1).also("huge", INT32_MAX)}));
  t.add(FUNCTION(dat_srq_free, {t.self(kSrq).also("in use", t.w.used_srq, state(DAT_INVALID_STATE_SRQ_IN_USE))}));
}

}  // namespace arguments
