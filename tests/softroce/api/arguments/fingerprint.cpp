// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "tests/softroce/api/arguments/world.hpp"

namespace arguments {
namespace {

class Hash {
 public:
  // The result of a query. param is zeroed first, because of its padding.
  template <class Param, class Mask>
  void add(DAT_RETURN (*query)(DAT_HANDLE, Mask, Param*), DAT_HANDLE handle, uint64_t mask) {
    Param param;
    std::memset(static_cast<void*>(&param), 0, sizeof param);
    const DAT_RETURN status = query(handle, static_cast<Mask>(mask), &param);
    mix(&status, sizeof status);
    mix(&param, sizeof param);
  }
  uint64_t value() const { return value_; }

 private:
  void mix(const void* bytes, size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < size; ++i) value_ = (value_ ^ at[i]) * 1099511628211U;  // FNV-1a
  }
  uint64_t value_ = 14695981039346656037U;
};

}  // namespace

uint64_t fingerprint(const World& w) {
  Hash hash;
  const DAT_HANDLE eps[] = {w.good[kEp], w.f.active.ep, w.f.passive.ep, w.bind_ep,      w.other_zone_ep,
                            w.srq_ep,    w.reserved_ep, w.bare_ep,      w.requesting_ep};
  const DAT_HANDLE evds[] = {w.good[kEvd],    w.full_evd,         w.plain_evd,        w.f.requests,
                             w.f.active.recv, w.f.active.request, w.f.active.connect, w.f.async};
  for (DAT_HANDLE ep : eps) hash.add(dat_ep_query, ep, DAT_EP_FIELD_ALL);
  for (DAT_HANDLE evd : evds) hash.add(dat_evd_query, evd, DAT_EVD_FIELD_ALL);
  for (DAT_HANDLE pz : {w.good[kPz], w.spare_pz, w.free_pz}) hash.add(dat_pz_query, pz, DAT_PZ_FIELD_ALL);
  for (DAT_HANDLE lmr : {w.good[kLmr], w.read_only_lmr}) hash.add(dat_lmr_query, lmr, DAT_LMR_FIELD_ALL);
  for (DAT_HANDLE cno : {w.good[kCno], w.used_cno ONLY_20(, w.fd_cno)}) hash.add(dat_cno_query, cno, DAT_CNO_FIELD_ALL);
  for (DAT_HANDLE srq : {w.good[kSrq], w.used_srq}) hash.add(dat_srq_query, srq, DAT_SRQ_FIELD_ALL);
  if (w.good[kRmr]) hash.add(dat_rmr_query, w.good[kRmr], DAT_RMR_FIELD_ALL);
  hash.add(dat_psp_query, w.good[kPsp], DAT_PSP_FIELD_ALL);
  hash.add(dat_rsp_query, w.good[kRsp], DAT_RSP_FIELD_ALL);
  ONLY_20(hash.add(dat_csp_query, w.good[kCsp], DAT_CSP_FIELD_ALL);)
  hash.add(dat_cr_query, w.good[kCr], DAT_CR_FIELD_ALL);
  return hash.value();
}

void settle(const World& w) {
  constexpr int kStableFor = 5;
  uint64_t last = fingerprint(w);
  for (int stable = 0, patience = 500; stable < kStableFor && patience > 0; --patience) {
    usleep(20000);
    const uint64_t now = fingerprint(w);
    stable = now == last ? stable + 1 : 0;
    last = now;
  }
}

}  // namespace arguments
