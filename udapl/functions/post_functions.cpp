// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path: a usual request is posted at once; any other request, mistakes included, takes the slow path.
#include "udapl/core/endpoint/ep_post_fast.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/segments.hpp"

namespace dapple::udapl::functions {
namespace {

// Out of line, so that the fast path spends no registers on it.

[[gnu::noinline]] DAT_RETURN refused(int error) {
  return to_dat(Ep::refused(error).value());
}

using Post = Result<> (Ep::*)(std::span<const ibv_sge>, uint64_t, uint32_t);

template <class List>
[[gnu::noinline]] DAT_RETURN post_unusual(Post post, Ep& ep, const List& segments, DAT_DTO_COOKIE cookie,
                                          DAT_COMPLETION_FLAGS flags) {
  if (auto status = segments.status()) return status;
  return to_dat_of_post((ep.*post)(segments.span(), cookie.as_64, flags), DAT_INVALID_ARG5);
}

using RdmaPost = Result<> (Ep::*)(std::span<const ibv_sge>, uint64_t, const RemoteBuffer&, uint32_t);

template <RdmaPost kPost>
[[gnu::noinline]] DAT_RETURN post_unusual_rdma(Ep& ep, const RequestSegments& segments, DAT_DTO_COOKIE cookie,
                                               const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  if (auto status = segments.status()) return status;
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return to_dat_of_post((ep.*kPost)(segments.span(), cookie.as_64, to_remote(*remote), flags), DAT_INVALID_ARG6);
}

template <DtoOperation kOperation, RdmaPost kPost>
[[gnu::always_inline]] inline DAT_RETURN post_rdma(DAT_EP_HANDLE ep_handle, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                                                   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                                                   DAT_COMPLETION_FLAGS flags) {
  auto* ep = object_of<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const RequestSegments segments(count, iov);
  if (remote) [[likely]] {
    const auto posted =
        ep->post_request_fast<kOperation>(count, segments.data(), cookie.as_64, to_remote(*remote), flags);
    if (posted) [[likely]]
      return *posted == 0 ? kSuccess : refused(*posted);
  }
  return post_unusual_rdma<kPost>(*ep, segments, cookie, remote, flags);
}

}  // namespace

DAT_RETURN ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = object_of<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const RequestSegments segments(count, iov);
  const auto posted = ep->post_request_fast<DtoOperation::kSend>(count, segments.data(), cookie.as_64, {}, flags);
  if (posted) [[likely]]
    return *posted == 0 ? kSuccess : refused(*posted);
  return post_unusual(&Ep::post_send, *ep, segments, cookie, flags);
}

DAT_RETURN ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = object_of<Ep>(ep_handle);
  if (!ep) [[unlikely]]
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const ReceiveSegments segments(count, iov);
  const auto posted = ep->post_recv_fast(count, segments.data(), cookie.as_64, flags);
  if (posted) [[likely]]
    return *posted == 0 ? kSuccess : refused(*posted);
  return post_unusual(&Ep::post_recv, *ep, segments, cookie, flags);
}

DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                              const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<DtoOperation::kRdmaWrite, &Ep::post_rdma_write>(ep_handle, count, iov, cookie, remote, flags);
}

DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma<DtoOperation::kRdmaRead, &Ep::post_rdma_read>(ep_handle, count, iov, cookie, remote, flags);
}

}  // namespace dapple::udapl::functions
