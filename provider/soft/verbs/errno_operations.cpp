// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations around all others: the error number that an operation returns is also in errno. A kernel's device has
// it there from the system call, and programs print it.
#include <errno.h>

#include <algorithm>
#include <type_traits>

#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/verbs.hpp"

namespace dapple::soft {
namespace {

constinit const Operations* inner = nullptr;

template <auto kMember, typename Function = FunctionOf<kMember>>
struct WithErrno;

template <auto kMember, typename Result, typename... Arguments>
struct WithErrno<kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const Result result = (inner->*kMember)(arguments...);
    // An operation that makes an object leaves the reason of a failure in errno itself.
    if constexpr (kReturnsNumber<kMember>) {
      if (result < 0) errno = -result;
    } else if constexpr (std::is_same_v<Result, int>) {
      if (result != 0) errno = result;
    }
    return result;
  }
};

// As libibverbs documents it, the result of a failure is -1.
int dm_export_dmabuf_fd(ibv_dm* dm) {
  return std::max(WithErrno<&Operations::dm_export_dmabuf_fd>::call(dm), -1);
}

}  // namespace

const Operations& errno_operations(const Operations& operations, bool data_path_sets_errno) {
  static const Operations table = [&] {
    inner = &operations;
    Operations made = operations;
#define DAPPLE_WITH_ERRNO(name) made.name = WithErrno<&Operations::name>::call;
    DAPPLE_PLANNED_VERBS(DAPPLE_WITH_ERRNO)
#undef DAPPLE_WITH_ERRNO
    made.dm_export_dmabuf_fd = dm_export_dmabuf_fd;
    if (!data_path_sets_errno) return made;
    made.poll_cq = operations.poll_cq;
    made.post_recv = operations.post_recv;
    made.post_send = operations.post_send;
    made.post_srq_recv = operations.post_srq_recv;
    made.req_notify_cq = operations.req_notify_cq;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft
