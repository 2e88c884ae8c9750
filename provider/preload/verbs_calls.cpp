// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Functions of libibverbs that refuse a call before the device hears of it. In programs without --explain and --check
// they only pass on the call.
#include <errno.h>
#include <infiniband/verbs.h>

#include "provider/preload/cm_calls.hpp"
#include "provider/preload/real_dlsym.hpp"
#include "provider/preload/real_function.hpp"

using namespace dapple::preload;

namespace {

constexpr int kFlags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

const char* reason_of_region(int flags, const void* address, size_t length, int access) {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if ((flags & ~kFlags) != 0) {
    return "flags has a bit that is none of IBV_REREG_MR_CHANGE_TRANSLATION, _PD and _ACCESS.\n"
           "Set these bits alone.";
  }
  if (moves && address == nullptr) {
    return "addr is null, and flags has IBV_REREG_MR_CHANGE_TRANSLATION.\n"
           "Give the new memory, or leave the flag out.";
  }
  if (moves && length == 0) {
    return "length is 0, and flags has IBV_REREG_MR_CHANGE_TRANSLATION.\n"
           "Give the length of the new memory, or leave the flag out.";
  }
  if (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) {
    return "access is not 0, and flags lacks IBV_REREG_MR_CHANGE_ACCESS.\n"
           "Set the flag, or give 0.";
  }
  return "the region is not one of ibv_reg_mr(): it has a dma-buf, device memory or no memory.\n"
         "Deregister it, and register the memory again.";
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  void* found = real_function("libibverbs.so.1", "ibv_rereg_mr", "IBVERBS_1.1", __builtin_return_address(0));
  const auto next = reinterpret_cast<int (*)(ibv_mr*, int, ibv_pd*, void*, size_t, int)>(found);
  if (next == nullptr) {
    errno = ENOSYS;
    return IBV_REREG_MR_ERR_INPUT;
  }
  const CmCall call("ibv_rereg_mr");
  const int result = next(mr, flags, pd, address, length, access);
  if (result == IBV_REREG_MR_ERR_INPUT && call.is_unexplained(errno))
    call.report(errno, reason_of_region(flags, address, length, access));
  return result;
}

}  // extern "C"
#pragma GCC visibility pop
