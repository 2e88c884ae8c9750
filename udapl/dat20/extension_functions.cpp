// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The InfiniBand extensions, behind the one variadic slot of the table.
#include <dat2/dat_ib_extensions.h>

#include <cstdarg>

#include "udapl/core/ep.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/counter_functions.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"
#include "udapl/dat20/open_query.hpp"
#include "udapl/dat20/segments.hpp"

namespace dapple::dat20 {
namespace {

// Arguments in the order of the dat_ib_post_rdma_write_immed macro.
DAT_RETURN rdma_write_immed(DAT_EP_HANDLE ep_handle, va_list args) {
  auto* ep = self<dat::Ep>(ep_handle);
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const auto count = va_arg(args, DAT_COUNT);
  const auto* iov = va_arg(args, const DAT_LMR_TRIPLET*);
  const auto cookie = va_arg(args, DAT_DTO_COOKIE);
  const auto* remote = va_arg(args, const DAT_RMR_TRIPLET*);
  const auto immediate = va_arg(args, DAT_UINT32);
  const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(args, int));
  const Segments segments = to_segments(count, iov);
  if (segments.status != DAT_SUCCESS) return segments.status;
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return to_dat(ep->post_rdma_write_immed(segments.list, cookie.as_64, to_remote(*remote), immediate, flags));
}

}  // namespace

DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args) {
  switch (static_cast<int>(op)) {
    case DAT_IB_QUERY_COUNTERS_OP:
      return query_counters(handle, args);
    case DAT_IB_PRINT_COUNTERS_OP:
      return print_counters(handle, args);
    case DAT_IB_OPEN_QUERY_OP:
      return open_query(static_cast<DAT_NAME_PTR>(handle), args);
    case DAT_IB_CLOSE_QUERY_OP:
      return close_query(handle);
    case DAT_IB_RDMA_WRITE_IMMED_OP:
      return rdma_write_immed(handle, args);
    default:
      return error(DAT_NOT_IMPLEMENTED);
  }
}

}  // namespace dapple::dat20

// The original exports its extension function beside its table's slot for it.
extern "C" [[gnu::visibility("default")]] DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op,
                                                                     va_list args) {
  return dapple::dat20::extended_op(handle, op, args);
}
