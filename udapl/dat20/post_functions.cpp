// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path: what is usual is posted at once, and anything else, mistakes included, goes the long way.
#include "udapl/core/ep.hpp"
#include "udapl/core/ep_post_plain.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"
#include "udapl/dat20/segments.hpp"

namespace dapple::dat20 {
namespace {

using dat::DtoOperation;
using dat::Ep;

const ibv_sge* as_sges(const DAT_LMR_TRIPLET* iov) {
  return reinterpret_cast<const ibv_sge*>(iov);
}

// Out of line: what the usual way does not need must not cost it registers.

[[gnu::noinline]] DAT_RETURN refused_request(int error) {
  return to_dat(Ep::refused(error).value());
}

[[gnu::noinline]] DAT_RETURN refused_recv(int error) {
  return to_dat(dat::fail_errno(error).value());
}

using Post = dat::Result<> (Ep::*)(std::span<const ibv_sge>, uint64_t, uint32_t);

[[gnu::noinline]] DAT_RETURN post_unusual(Post post, Ep& ep, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                                          DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  return to_dat((ep.*post)(segments.list, cookie.as_64, flags));
}

using RdmaPost = dat::Result<> (Ep::*)(std::span<const ibv_sge>, uint64_t, const dat::RemoteBuffer&, uint32_t);

template <RdmaPost kPost>
[[gnu::noinline]] DAT_RETURN post_unusual_rdma(Ep& ep, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                                               DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                                               DAT_COMPLETION_FLAGS flags) {
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return to_dat((ep.*kPost)(segments.list, cookie.as_64, to_remote(*remote), flags));
}

template <DtoOperation kOperation, RdmaPost kPost>
[[gnu::always_inline]] inline DAT_RETURN post_rdma(DAT_EP_HANDLE ep_handle, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                                                   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                                                   DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  if (remote) [[likely]] {
    const auto posted =
        ep->post_plain_request<kOperation>(count, as_sges(iov), cookie.as_64, to_remote(*remote), flags);
    if (posted) [[likely]]
      return *posted == 0 ? kSuccess : refused_request(*posted);
  }
  return post_unusual_rdma<kPost>(*ep, count, iov, cookie, remote, flags);
}

}  // namespace

DAT_RETURN ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const auto posted = ep->post_plain_request<DtoOperation::kSend>(count, as_sges(iov), cookie.as_64, {}, flags);
  if (posted) [[likely]]
    return *posted == 0 ? kSuccess : refused_request(*posted);
  return post_unusual(&Ep::post_send, *ep, count, iov, cookie, flags);
}

DAT_RETURN ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const auto posted = ep->post_plain_recv(count, as_sges(iov), cookie.as_64, flags);
  if (posted) [[likely]]
    return *posted == 0 ? kSuccess : refused_recv(*posted);
  return post_unusual(&Ep::post_recv, *ep, count, iov, cookie, flags);
}

DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                              const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<DtoOperation::kRdmaWrite, &Ep::post_rdma_write>(ep_handle, count, iov, cookie, remote, flags);
}

DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<DtoOperation::kRdmaRead, &Ep::post_rdma_read>(ep_handle, count, iov, cookie, remote, flags);
}

}  // namespace dapple::dat20
