// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Owning handles over libibverbs. A destructor ignores the result of the destroy call. If EBUSY is a state that the
// caller must report, the caller uses destroy() first and drops the handle only on success.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>

namespace dapple::verbs {

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* object) const noexcept {
    Destroy(object);
  }
};

// ibv_dealloc_mw() is static in verbs.h, so a type that named it would differ in each translation unit.
inline int dealloc_mw(ibv_mw* mw) noexcept {
  return ibv_dealloc_mw(mw);
}

using Pd = std::unique_ptr<ibv_pd, Deleter<&ibv_dealloc_pd>>;
using CompChannel = std::unique_ptr<ibv_comp_channel, Deleter<&ibv_destroy_comp_channel>>;
using Cq = std::unique_ptr<ibv_cq, Deleter<&ibv_destroy_cq>>;
using Qp = std::unique_ptr<ibv_qp, Deleter<&ibv_destroy_qp>>;
using Srq = std::unique_ptr<ibv_srq, Deleter<&ibv_destroy_srq>>;
using Mr = std::unique_ptr<ibv_mr, Deleter<&ibv_dereg_mr>>;
using Ah = std::unique_ptr<ibv_ah, Deleter<&ibv_destroy_ah>>;
using Mw = std::unique_ptr<ibv_mw, Deleter<&dealloc_mw>>;

// Destroys now; on failure the handle keeps the object. Returns 0 or an errno value.
template <class T, auto Destroy>
[[nodiscard]] int destroy(std::unique_ptr<T, Deleter<Destroy>>& handle) noexcept {
  if (!handle) return 0;
  if (int error = Destroy(handle.get())) return error > 0 ? error : errno;
  (void)handle.release();
  return 0;
}

// ibv_poll_cq fills the array from its start and does not write to the rest; a negative result means that the CQ is
// broken.
inline int poll(ibv_cq* cq, ibv_wc* completions, int capacity) noexcept {
  return ibv_poll_cq(cq, capacity, completions);
}

inline bool is_iwarp(const ibv_context& context) {
  return context.device->transport_type == IBV_TRANSPORT_IWARP;
}

}  // namespace dapple::verbs
