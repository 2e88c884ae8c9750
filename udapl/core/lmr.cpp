// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/lmr.hpp"

#include <sys/uio.h>

#include "udapl/core/ia.hpp"
#include "udapl/core/pz.hpp"

namespace dapple::dat {
namespace {

int to_access(uint32_t privileges) {
  int access = 0;
  if (privileges & kLocalWrite) access |= IBV_ACCESS_LOCAL_WRITE;
  if (privileges & kRemoteRead) access |= IBV_ACCESS_REMOTE_READ;
  // IBTA 10.6.3.1: a region that peers may write must be writable locally.
  if (privileges & kRemoteWrite) access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  return access;
}

}  // namespace

Lmr::Lmr(Ia& ia, Pz& pz, verbs::Mr mr, void* address, uint64_t length, uint32_t privileges)
    : Object(ia.tables().live, kKind, &ia),
      pz_(pz),
      address_(reinterpret_cast<uint64_t>(address)),
      length_(length),
      privileges_(privileges),
      mr_(std::move(mr)) {}

Result<Lmr*> Lmr::create(Ia& ia, Pz& pz, void* address, uint64_t length, uint32_t privileges) {
  if (privileges & ~uint32_t{kAllPrivileges}) return fail(Type::kInvalidParameter, Subtype::kArg6);
  if (length == 0 || length > ia.device().max_mr_size) return fail(Type::kInvalidParameter, Subtype::kArg4);
  if (reinterpret_cast<uint64_t>(address) + (length - 1) < length - 1) {
    return fail(Type::kInvalidParameter, Subtype::kArg4);  // wraps the address space
  }
  verbs::Mr mr(ibv_reg_mr(pz.pd(), address, length, to_access(privileges)));
  if (!mr) {
    // EFAULT: not mapped, or not with the rights asked for.
    return errno == EFAULT ? fail(Type::kInvalidParameter, Subtype::kArg3) : fail_errno(errno);
  }
  if (ia.maintains_caches()) {
    const iovec range{address, length};
    dappledv_sync_for_cpu(&ia.coherence(), &range, 1);
  }
  Lmr* lmr = arena<Lmr>().create(ia, pz, std::move(mr), address, length, privileges);
  ia.adopt(*lmr);
  pz.acquire();
  return lmr;
}

Result<> Lmr::free(Lmr& lmr) {
  Ia& ia = lmr.ia();
  if (lmr.in_use()) return fail(Type::kInvalidState, Subtype::kLmrInUse);
  // Out of the table first: no sync may find a region that is going.
  auto entry = ia.lmrs().take(lmr.context());
  if (int error = verbs::destroy(lmr.mr_)) {
    ia.lmrs().put_back(std::move(entry));
    return error == EBUSY || error == EINVAL ? fail(Type::kInvalidState, Subtype::kLmrInUse) : fail_errno(error);
  }
  lmr.pz_.release();
  ia.disown(lmr);
  arena<Lmr>().destroy(&lmr, ia.tables().dead);
  return {};
}

}  // namespace dapple::dat
