// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path: a handle check and a change of names, no more.
#include "udapl/core/ep.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"
#include "udapl/dat20/segments.hpp"

namespace dapple::dat20 {
namespace {

using dat::Ep;

using RdmaPost = dat::Result<> (Ep::*)(std::span<const ibv_sge>, uint64_t, const dat::RemoteBuffer&, uint32_t);

DAT_RETURN post_rdma(RdmaPost post, DAT_EP_HANDLE ep_handle, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return to_dat((ep->*post)(segments.list, cookie.as_64, to_remote(*remote), flags));
}

}  // namespace

DAT_RETURN ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  return to_dat(ep->post_send(segments.list, cookie.as_64, flags));
}

DAT_RETURN ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  auto* ep = self<Ep>(ep_handle);
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  return to_dat(ep->post_recv(segments.list, cookie.as_64, flags));
}

DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                              const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma(&Ep::post_rdma_write, ep_handle, count, iov, cookie, remote, flags);
}

DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  return post_rdma(&Ep::post_rdma_read, ep_handle, count, iov, cookie, remote, flags);
}

}  // namespace dapple::dat20
