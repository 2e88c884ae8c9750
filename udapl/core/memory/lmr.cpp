// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/memory/lmr.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include "ibverbs-glue/memlock.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/log.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

int to_access(uint32_t privileges) {
  int access = 0;
  if (privileges & kLocalWrite) access |= IBV_ACCESS_LOCAL_WRITE;
  if (privileges & kRemoteRead) access |= IBV_ACCESS_REMOTE_READ;
  // IBTA 10.6.3.1: a region that peers may write must be writable locally.
  if (privileges & kRemoteWrite) access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if (privileges & kRemoteAtomic) access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
  return access;
}

Result<> check(const Ia& ia, const LmrAttr& attr) {
  if (attr.privileges & ~uint32_t{kAllPrivileges | kRemoteAtomic | kMarks}) {
    return refuse(Subtype::kPrivileges, "it has unknown flags");
  }
  if ((attr.privileges & kNoncoherent) && !ia.memory_coherence(true).sync_supported) {
    log_error("IA %s: the memory needs cache maintenance, and this CPU has no instruction for it in user space",
              ia.name().c_str());
    return fail(Type::kModelNotSupported);
  }
  if ((attr.privileges & kPersistent) && !ia.coherence().persist_supported) {
    log_error("IA %s: the memory must survive a loss of power, and no instruction in user space can ensure this here",
              ia.name().c_str());
    return fail(Type::kModelNotSupported);
  }
  if ((attr.privileges & kRemoteAtomic) && !ia.has_atomics()) return fail(Type::kModelNotSupported);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uint64_t>(attr.address);
  const bool wraps = address + (attr.length - 1) < address;  // the address space
  if (attr.length == 0 || !within(ia, "an LMR's length", attr.length, ia.device().max_mr_size) ||
      attr.length / page + 2 >= ia.rules().max_pages_of_a_region || wraps) {
    return fail(Type::kInvalidParameter, Subtype::kLength);
  }
  if (!attr.zero_based) return {};
  // Devices translate by page: offset 0 can only be the first byte of a page. Most devices refuse anything else, and
  // the software device of some kernels would accept it and address the wrong bytes.
  if (!ia.rules().has_zero_based || address % page != 0) return fail(Type::kModelNotSupported);
  return {};
}

verbs::Mr register_memory(const Pz& pz, const LmrAttr& attr, int access) {
  if (attr.zero_based) return verbs::Mr(ibv_reg_mr_iova(pz.pd(), attr.address, attr.length, 0, access));
  return verbs::Mr(ibv_reg_mr(pz.pd(), attr.address, attr.length, access));
}

// bindable: in, the caller wants windows; out, the region allows them.
verbs::Mr register_memory(const Pz& pz, const LmrAttr& attr, bool& bindable) {
  int access = to_access(attr.privileges);
  if (attr.relaxed_ordering) access |= IBV_ACCESS_RELAXED_ORDERING;
  verbs::Mr mr = register_memory(pz, attr, bindable ? access | IBV_ACCESS_MW_BIND : access);
  if (!mr && errno == EFAULT && bindable && !(access & IBV_ACCESS_LOCAL_WRITE)) {
    // For the kernel, windows need a region that may be written; memory that is mapped read-only cannot be one.
    bindable = false;
    mr = register_memory(pz, attr, access);
  }
  return mr;
}

// Some devices report a lack of regions as EINVAL, like a wrong argument. Then they refuse the smallest region, too.
bool has_region_left(const Pz& pz) {
  static char byte;
  return verbs::Mr(ibv_reg_mr(pz.pd(), &byte, sizeof byte, 0)) != nullptr;
}

void explain_shortage(int error, const Ia& ia, const LmrAttr& attr) {
  char why[256];
  if (verbs::explain_memlock(error, reinterpret_cast<uint64_t>(attr.address), attr.length, why, sizeof why)) {
    log_error("IA %s: %s", ia.name().c_str(), why);
  }
}

}  // namespace

Lmr::Lmr(Ia& ia, Pz& pz, verbs::Mr mr, const LmrAttr& attr, SharedCookieHold cookie, bool bindable)
    : Object(ia.tables().live, kKind, &ia),
      pz_(pz),
      attr_(attr),
      bindable_(bindable),
      cookie_(std::move(cookie)),
      mr_(std::move(mr)) {
  ia.lmrs().add(*this);
}

Result<Lmr*> Lmr::create(Ia& ia, Pz& pz, const LmrAttr& attr, std::unique_lock<std::mutex>& control,
                         const SharedCookie* shared) {
  if (auto good = check(ia, attr); !good) return tl::unexpected(good.error());
  auto cookie = shared ? SharedCookieHold::take(*shared, reinterpret_cast<uint64_t>(attr.address), attr.length)
                       : SharedCookieHold();
  if (!cookie) return tl::unexpected(cookie.error());
  const UseOf<Pz> use(pz);  // keeps the zone while the control mutex is released
  bool bindable = ia.device().max_mw > 0;
  verbs::Mr mr;
  int error = 0;
  {
    const Ia::Unlocked unlocked(ia, control);
    mr = register_memory(pz, attr, bindable);
    error = errno;
    if (mr && (ia.maintains_caches() || (attr.privileges & kNoncoherent))) {
      const iovec range{attr.address, attr.length};
      (void)dappledv_sync_for_cpu(&ia.memory_coherence(!ia.maintains_caches()), &range, 1);
    }
    if (!mr && error == EINVAL && !has_region_left(pz)) error = ENOSPC;
    if (!mr) explain_shortage(error, ia, attr);
  }
  if (!mr) {
    // EFAULT: the memory is not mapped, or lacks the requested rights. EINVAL: it is longer than an address space;
    // everything else was checked.
    if (error == EFAULT) return fail(Type::kInvalidParameter, Subtype::kAddress);
    return error == EINVAL ? fail(Type::kInvalidParameter, Subtype::kLength) : fail_errno(error);
  }
  Lmr* lmr = arena<Lmr>().create(ia, pz, std::move(mr), attr, std::move(*cookie), bindable);
  ia.adopt(*lmr);
  return lmr;
}

Result<> Lmr::check_can_free() const {
  if (in_use() || windows_.load(std::memory_order_acquire) != 0) return fail(Type::kInvalidState, Subtype::kLmrInUse);
  return leaving_ ? fail(Type::kInvalidHandle, Subtype::kHandleLmr) : Result<>();
}

int Lmr::deregister() {
  LmrTable& table = ia().lmrs();
  // The region leaves the table first: no sync may find a region that is being destroyed.
  auto entry = table.take(context());
  const int error = verbs::destroy(mr_);
  if (error) table.put_back(std::move(entry));
  return error;
}

Result<> Lmr::finish_free(int error) {
  if (error)
    return error == EBUSY || error == EINVAL ? fail(Type::kInvalidState, Subtype::kLmrInUse) : fail_errno(error);
  ia().destroy(*this);
  return {};
}

Result<> Lmr::free(Lmr& lmr, std::unique_lock<std::mutex>& control) {
  if (auto good = lmr.check_can_free(); !good) return good;
  lmr.leaving_ = true;
  int error = 0;
  {
    const Ia::Unlocked unlocked(lmr.ia(), control);
    error = lmr.deregister();
  }
  lmr.leaving_ = false;
  return lmr.finish_free(error);
}

Result<> Lmr::free(Lmr& lmr) {
  if (auto good = lmr.check_can_free(); !good) return good;
  return lmr.finish_free(lmr.deregister());
}

}  // namespace dapple::udapl
