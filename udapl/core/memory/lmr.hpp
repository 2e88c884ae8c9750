// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/memory/shared_memory.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

// DAT_MEM_PRIV_FLAGS, the extensions' flag for atomics, and our own.
enum MemPrivilege : uint32_t {
  kLocalRead = 0x01,
  kRemoteRead = 0x02,
  kLocalWrite = 0x10,
  kRemoteWrite = 0x20,
  kRemoteAtomic = 0x40,
  kNoncoherent = 0x01000000,  // not a right: the memory is not coherent between its users, whatever the device is
  kPersistent = 0x02000000,   // not a right: a sync ends when the data survives a loss of power
  kMarks = kNoncoherent | kPersistent,
  kAllPrivileges = kLocalRead | kRemoteRead | kLocalWrite | kRemoteWrite,
  kRemotePrivileges = kRemoteRead | kRemoteWrite | kRemoteAtomic,
};

// DAT_MEM_TYPE; 1.2 and 2.0 agree on these values, but only 1.2 has the last one.
enum class MemType : uint8_t { kVirtual = 0, kLmr = 1, kSharedVirtual = 2, kSoVirtual = 3 };

struct LmrAttr {
  void* address = nullptr;
  uint64_t length = 0;  // bytes
  uint32_t privileges = 0;
  bool zero_based = false;
  bool relaxed_ordering = false;     // the device may reorder its accesses
  bool disables_reordering = false;  // the consumer has asked that it may not (1.2)
  MemType type = MemType::kVirtual;
  const void* description = nullptr;  // of kLmr: the handle of the first region
};

// Local memory region. Immutable except for the number of its windows. The memory belongs to the consumer and must
// outlive the LMR. A region over the memory of another region is registered on its own and may outlive that one.
class Lmr : public Object {
 public:
  static constexpr Kind kKind = Kind::kLmr;

  // Registration is a sync point: on a device that is not coherent, or for memory that is not, it cleans and
  // invalidates the region once. cookie: of kSharedVirtual. The caller holds the control mutex, which the call releases
  // during that work and the device's.
  static Result<Lmr*> create(Ia& ia, Pz& pz, const LmrAttr& attr, std::unique_lock<std::mutex>& control,
                             const SharedCookie* cookie = nullptr);
  // INVALID_STATE while a window is bound to the region. The caller holds the control mutex, which the first form
  // releases while the device and a sync of the region work.
  static Result<> free(Lmr& lmr, std::unique_lock<std::mutex>& control);
  static Result<> free(Lmr& lmr);

  Pz& pz() const { return *pz_; }
  const LmrAttr& attr() const { return attr_; }
  const SharedCookie* cookie() const { return cookie_.cookie() ? &*cookie_.cookie() : nullptr; }
  // lmr_context and rmr_context; the latter is 0 unless remote access was asked for.
  uint32_t context() const { return mr_->lkey; }
  uint32_t remote_context() const { return attr_.privileges & kRemotePrivileges ? mr_->rkey : 0; }
  ibv_mr* mr() const { return mr_.get(); }
  // True if a sync has maintenance to do that the device does not need.
  bool marked() const { return attr_.privileges & kMarks; }
  bool noncoherent() const { return attr_.privileges & kNoncoherent; }
  bool persistent() const { return attr_.privileges & kPersistent; }
  // True if memory windows may be bound to it.
  bool bindable() const { return bindable_; }

  // The first address in segments: the memory's own address, or 0 in a zero-based region.
  uint64_t base() const { return attr_.zero_based ? 0 : reinterpret_cast<uint64_t>(attr_.address); }
  // True if the segment [at, at + length) lies inside; an empty one may also lie at the end.
  bool contains(uint64_t at, uint64_t length) const {
    return at >= base() && length <= attr_.length && at - base() <= attr_.length - length;
  }
  // The CPU's address for `at` in a segment that is inside.
  void* cpu_address(uint64_t at) const {
    return reinterpret_cast<void*>(at - base() + reinterpret_cast<uint64_t>(attr_.address));
  }

  // The number of bound windows. On a thread-safe IA any thread changes it.
  std::atomic<uint32_t>& windows() { return windows_; }

 private:
  friend class Arena<Lmr>;
  Result<> check_can_free() const;
  // Removes the region from the table of the sync calls and from the device. The result is an errno value, after which
  // the region is in the table again.
  int deregister();
  Result<> finish_free(int error);
  Lmr(Ia& ia, Pz& pz, verbs::Mr mr, const LmrAttr& attr, SharedCookieHold cookie, bool bindable);

  const UseOf<Pz> pz_;
  const LmrAttr attr_;
  const bool bindable_;
  bool leaving_ = false;  // a free is running without the control mutex, which guards this flag
  std::atomic<uint32_t> windows_ = 0;
  SharedCookieHold cookie_;
  verbs::Mr mr_;
};

}  // namespace dapple::udapl
