// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The buffers of requests on a device that is not cache-coherent. On such a device wr_id is the address of a slot,
// which keeps the program's wr_id and the buffer that needs maintenance at the completion. On other devices there are
// no slots.
//
// Threads: internally locked.
#pragma once

#include <infiniband/dappledv.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::rpma {

class SlotOwner;

struct Slot {
  uint64_t wr_id = 0;
  iovec sink{};  // empty if the device only reads
  SlotOwner* owner = nullptr;
  Slot* next = nullptr;
};

// The device's access to a request's buffer.
enum class Use { kNothing, kReads, kWrites };

// A request's segment, and the region of its key; both are null if the CPU does not access the memory.
struct Buffer {
  const ibv_sge* segment = nullptr;
  const ibv_mr* region = nullptr;
  Use use = Use::kNothing;

  // Empty if the segment is not in the region: the device will refuse it, and the memory may not exist.
  iovec range() const {
    if (!segment || !region || use == Use::kNothing) return {nullptr, 0};
    const uint64_t offset = segment->addr - reinterpret_cast<uintptr_t>(region->addr);
    if (offset > region->length || segment->length > region->length - offset) return {nullptr, 0};
    return {reinterpret_cast<void*>(segment->addr), segment->length};
  }
};

class SlotOwner {
 public:
  explicit SlotOwner(const dappledv_region_attr& attr) : attr_(attr) {}
  SlotOwner(const SlotOwner&) = delete;
  virtual ~SlotOwner() = default;

  // Called after a completion: makes written data visible, and frees the slot. A failed request has written no valid
  // data, and its buffer may have been freed.
  virtual void complete(Slot& slot, bool succeeded) = 0;
  // Called if the completion is not delivered. The program may have freed the buffers.
  virtual void discard(Slot&) {}

 protected:
  void prepare(Slot& slot, uint64_t wr_id, const Buffer& buffer) {
    const iovec range = buffer.range();
    slot = {wr_id, buffer.use == Use::kWrites ? range : iovec{nullptr, 0}, this, nullptr};
    if (range.iov_len == 0) return;
    (void)(buffer.use == Use::kWrites ? dappledv_sync_for_cpu : dappledv_sync_for_device)(&attr_, &range, 1);
  }
  void finish(const Slot& slot) const {
    if (slot.sink.iov_len) (void)dappledv_sync_for_cpu(&attr_, &slot.sink, 1);
  }

  std::mutex mutex_;

 private:
  const dappledv_region_attr& attr_;  // owned by the peer
};

// For a send queue: completions come in order, and each also retires the earlier requests that made none.
class SendSlots final : public SlotOwner {
 public:
  SendSlots(const dappledv_region_attr& attr, uint32_t capacity)
      : SlotOwner(attr), slots_(new (std::nothrow) Slot[capacity]), capacity_(capacity) {}
  bool good() const { return slots_ != nullptr; }

  // `function` posts with this wr_id and returns an errno value, as this function does.
  template <class Function>
  int post(uint64_t wr_id, const Buffer& buffer, Function function) {
    const std::lock_guard lock(mutex_);
    if (taken_ - retired_ == capacity_) return ENOMEM;
    Slot& slot = slots_[taken_ % capacity_];
    prepare(slot, wr_id, buffer);
    const int error = function(reinterpret_cast<uintptr_t>(&slot));
    if (!error) ++taken_;
    return error;
  }

  void complete(Slot& slot, bool succeeded) override {
    const std::lock_guard lock(mutex_);
    while (retired_ != taken_) {
      Slot& oldest = slots_[retired_++ % capacity_];
      if (&oldest != &slot || succeeded) finish(oldest);
      if (&oldest == &slot) return;
    }
  }

 private:
  std::unique_ptr<Slot[]> slots_;
  const uint32_t capacity_;
  uint64_t taken_ = 0;
  uint64_t retired_ = 0;
};

// For a receive queue, also a shared one, whose completions come in any order. It grows as needed. The sizes of the
// queue and of the CQs limit it, because a slot is free again when its completion has been taken.
class RecvSlots final : public SlotOwner {
 public:
  using SlotOwner::SlotOwner;
  // Also frees the slots of receives that never completed.
  ~RecvSlots() override {
    while (Owned* slot = made_) {
      made_ = slot->older;
      delete slot;
    }
  }

  template <class Function>
  int post(uint64_t wr_id, const Buffer& buffer, Function function) {
    Slot* slot = take();
    if (!slot) return ENOMEM;
    prepare(*slot, wr_id, buffer);
    const int error = function(reinterpret_cast<uintptr_t>(slot));
    if (error) give_back(slot);
    return error;
  }

  void complete(Slot& slot, bool succeeded) override {
    if (succeeded) finish(slot);
    give_back(&slot);
  }
  void discard(Slot& slot) override { give_back(&slot); }

 private:
  struct Owned : Slot {
    Owned* older = nullptr;
  };

  Slot* take() {
    const std::lock_guard lock(mutex_);
    if (Slot* slot = free_) {
      free_ = slot->next;
      return slot;
    }
    auto* slot = new (std::nothrow) Owned;
    if (slot) slot->older = std::exchange(made_, slot);
    return slot;
  }
  void give_back(Slot* slot) {
    const std::lock_guard lock(mutex_);
    slot->next = free_;
    free_ = slot;
  }

  Slot* free_ = nullptr;
  Owned* made_ = nullptr;  // all
};

// Turns the slot of a completion back into the program's wr_id. Call it in the CQ's order. siw may end a connection
// with a failed completion that belongs to no request (docs/siw.md); its wr_id stays 0.
inline void resolve_slot(ibv_wc& completion) {
  auto* slot = reinterpret_cast<Slot*>(completion.wr_id);
  if (!slot) return;
  completion.wr_id = slot->wr_id;
  slot->owner->complete(*slot, completion.status == IBV_WC_SUCCESS);
}

}  // namespace dapple::rpma
