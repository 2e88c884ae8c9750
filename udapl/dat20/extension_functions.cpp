// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The InfiniBand extensions, behind the one variadic slot of the table.
#include <dat2/dat_ib_extensions.h>

#include <cstdarg>

#include "udapl/dat20/extensions.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/segments.hpp"

namespace dapple::udapl::functions {
namespace {

// Arguments in the order of the dat_ib_post_rdma_write_immed macro.
DAT_RETURN rdma_write_immed(Ep& ep, va_list args) {
  const auto count = va_arg(args, DAT_COUNT);
  const auto* iov = va_arg(args, const DAT_LMR_TRIPLET*);
  const auto cookie = va_arg(args, DAT_DTO_COOKIE);
  const auto* remote = va_arg(args, const DAT_RMR_TRIPLET*);
  const auto immediate = va_arg(args, DAT_UINT32);
  const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(args, int));
  const RequestSegments segments(count, iov);
  if (auto status = segments.status()) return status;
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  if (static_cast<uint32_t>(flags) & ~ep.request_flags()) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  return to_dat_of_post(ep.post_rdma_write_immed(segments.span(), cookie.as_64, to_remote(*remote), immediate, flags),
                        DAT_INVALID_ARG7);
}

// Arguments in the order of the dat_ib_post_cmp_and_swap macro; dat_ib_post_fetch_and_add has no second value.
template <DtoOperation kOperation>
DAT_RETURN atomic(Ep& ep, va_list args) {
  constexpr bool kSwaps = kOperation == DtoOperation::kCompareAndSwap;
  const auto value = va_arg(args, DAT_UINT64);
  const auto swap = kSwaps ? va_arg(args, DAT_UINT64) : 0;
  const auto* local = va_arg(args, const DAT_LMR_TRIPLET*);
  const auto cookie = va_arg(args, DAT_DTO_COOKIE);
  const auto* remote = va_arg(args, const DAT_RMR_TRIPLET*);
  const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(args, int));
  if (!local) return error(DAT_INVALID_PARAMETER, kSwaps ? DAT_INVALID_ARG4 : DAT_INVALID_ARG3);
  if (!remote || remote->virtual_address % 8 != 0) {
    return error(DAT_INVALID_PARAMETER, kSwaps ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5);
  }
  if (static_cast<uint32_t>(flags) & ~ep.request_flags()) {
    return error(DAT_INVALID_PARAMETER, kSwaps ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6);
  }
  const RequestSegments result(1, local);
  return to_dat(ep.post_atomic(kOperation, *result.data(), cookie.as_64, to_remote(*remote), value, swap, flags));
}

// Arguments in the order of the dat_ib_post_send_ud macro.
DAT_RETURN send_ud(Ep& ep, va_list args) {
  const auto count = va_arg(args, DAT_COUNT);
  const auto* iov = va_arg(args, const DAT_LMR_TRIPLET*);
  const auto* address = va_arg(args, const DAT_IB_ADDR_HANDLE*);
  const auto cookie = va_arg(args, DAT_DTO_COOKIE);
  const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(args, int));
  const RequestSegments segments(count, iov);
  if (auto status = segments.status()) return status;
  if (!address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  const auto posted = ep.post_send_ud(segments.span(), cookie.as_64, address->ah, address->qpn, flags);
  return to_dat(posted, {{Subtype::kSegmentCount, DAT_INVALID_ARG2},
                         {Subtype::kSegments, DAT_INVALID_ARG3},
                         {Subtype::kAddress, DAT_INVALID_ARG4},
                         {Subtype::kFlags, DAT_INVALID_ARG6}});
}

// Argument: the context of an event.
DAT_RETURN ud_cm_free(Ep& ep, va_list args) {
  const void* connection = va_arg(args, DAT_CONTEXT).as_ptr;
  if (!ep.is_datagrams()) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] { return ep.datagrams()->free_connection(connection); },
                    {{Subtype::kConnection, DAT_INVALID_ARG2}});
}

// Argument: an address from an event.
DAT_RETURN ud_ah_free(Ep& ep, va_list args) {
  const auto* address = va_arg(args, const DAT_IB_ADDR_HANDLE*);
  if (!address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!ep.is_datagrams()) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] { return ep.datagrams()->free_address(address->ah); }, {{Subtype::kAddress, DAT_INVALID_ARG2}});
}

// Calls one of the functions above with the endpoint of the handle.
DAT_RETURN on_ep(DAT_RETURN (*function)(Ep&, va_list), DAT_HANDLE handle, va_list args) {
  auto* ep = object_of<Ep>(handle);
  return ep ? function(*ep, args) : error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

}  // namespace

DAT_RETURN handle_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args) {
  switch (static_cast<int>(op)) {
    case DAT_IB_FETCH_AND_ADD_OP:
      return on_ep(atomic<DtoOperation::kFetchAndAdd>, handle, args);
    case DAT_IB_CMP_AND_SWAP_OP:
      return on_ep(atomic<DtoOperation::kCompareAndSwap>, handle, args);
    case DAT_IB_UD_SEND_OP:
      return on_ep(send_ud, handle, args);
    case DAT_IB_UD_CM_FREE_OP:
      return on_ep(ud_cm_free, handle, args);
    case DAT_IB_UD_AH_FREE_OP:
      return on_ep(ud_ah_free, handle, args);
    case DAT_IB_QUERY_COUNTERS_OP:
      return query_counters(handle, args);
    case DAT_IB_PRINT_COUNTERS_OP:
      return print_counters(handle, args);
    case DAT_IB_START_COUNTERS_OP:
      return start_counters(handle, args);
    case DAT_IB_STOP_COUNTERS_OP:
      return stop_counters(handle, args);
    case DAT_IB_OPEN_QUERY_OP:
      return open_query(static_cast<DAT_NAME_PTR>(handle), args);
    case DAT_IB_CLOSE_QUERY_OP:
      return close_query(handle);
    case DAT_IB_RDMA_WRITE_IMMED_OP:
      return on_ep(rdma_write_immed, handle, args);
    default:  // the collectives, and unknown operations
      return error(DAT_NOT_IMPLEMENTED);
  }
}

}  // namespace dapple::udapl::functions

// The original exports its extension function beside the slot in its table.
extern "C" [[gnu::visibility("default")]] DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op,
                                                                     va_list args) {
  return dapple::udapl::functions::handle_extendedop(handle, op, args);
}
