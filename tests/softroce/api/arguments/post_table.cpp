// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Data transfers.
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

DAT_LMR_TRIPLET iov[64];
DAT_RMR_TRIPLET there, too_short;
ONLY_20(DAT_RMR_TRIPLET sink, unknown_sink;)

Argument poster(const Table& t) {
  const World& w = t.w;
  return t.self(kEp, w.bind_ep)
      .also("unconnected", w.good[kEp], state(DAT_INVALID_STATE_EP_UNCONNECTED))
      .also("connecting", w.requesting_ep, state(DAT_INVALID_STATE_EP_ACTCONNPENDING))
      .also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))
      .also("unconfigured", w.bare_ep, state(DAT_INVALID_STATE_EP_UNCONFIGURED));
}

Argument count() {
  return good(1).also("negative", -1).also("more than the EP has", 40).also("huge", INT32_MAX);
}
// In 1.2 a segment can be longer than any message.
ONLY_12(DAT_LMR_TRIPLET endless;)
Argument segments() {
  return needed(&iov[0]) ONLY_12(.also("a segment of 4 GiB", &endless));
}
Argument flags() {
  return good(DAT_COMPLETION_DEFAULT_FLAG).also("out of range", 0x1000).also("negative", -1);
}
Argument remote_buffer() {
  return needed(&there).also("too short", &too_short, status(DAT_LENGTH_ERROR));
}

}  // namespace

void add_posts(Table& t) {
  const World& w = t.w;
  const auto start = reinterpret_cast<DAT_VADDR>(w.f.memory);
  for (DAT_LMR_TRIPLET& segment : iov) segment = lmr_triplet(start, 100, w.f.lmr_context);
  there = rmr_triplet(start + HALF, 100, w.f.rmr_context);
  too_short = rmr_triplet(start + HALF, 99, w.f.rmr_context);
  ONLY_20(sink = there; unknown_sink = rmr_triplet(start, 100, 0xdeadbeef);)
  ONLY_12(endless = lmr_triplet(start, UINT64_C(1) << 32, w.f.lmr_context);)

  t.add(FUNCTION(dat_ep_post_send, {poster(t), count(), segments(), any(1), flags()}));
#if DAPPLE_DAT_MAJOR != 1
  t.add(FUNCTION(dat_ep_post_send_with_invalidate,
                 {poster(t), count(), segments(), any(2), flags(), any(DAT_FALSE), any(0)}));
#endif
  t.add(FUNCTION(dat_ep_post_recv, {t.self(kEp, w.bind_ep)
                                        .also("unconfigured", w.bare_ep, state(DAT_INVALID_STATE_EP_UNCONFIGURED))
                                        .also("with an SRQ", w.srq_ep, status(DAT_INVALID_STATE)),
                                    count(), needed(&iov[0]), any(3), flags()}));
  t.add(FUNCTION(dat_ep_post_rdma_read, {poster(t), count(), segments(), any(4), remote_buffer(), flags()}));
  t.add(FUNCTION(dat_ep_post_rdma_write, {poster(t), count(), segments(), any(5), remote_buffer(), flags()}));
#if DAPPLE_DAT_MAJOR != 1
  // No window is bound, so its sink is always wrong; the tests of windows have the correct case.
  const DAT_RETURN no_window = status(DAT_PROTECTION_VIOLATION);
  t.add(FUNCTION_GIVING(no_window, dat_ep_post_rdma_read_to_rmr,
                        {t.self(kEp, w.bind_ep), needed(&sink).also("unknown", &unknown_sink, no_window), any(6),
                         needed(&there), flags()}));
#endif
}

}  // namespace arguments
