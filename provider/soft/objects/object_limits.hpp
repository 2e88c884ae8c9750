// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The most objects of each kind that a device has at a time: the limits that ibv_query_device() reports, which the
// device's identity may lower. They hold for all open contexts of a device in a process together.
//
// Functions without another remark are safe from any thread, and take no lock.
#pragma once

#include <stdint.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <utility>

#include "provider/protocol/device_attributes.hpp"
#include "provider/protocol/resource_rows.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/fork_generation.hpp"

namespace dapple::soft {

enum class ObjectKind : uint8_t {
  kPd,
  kRegion,
  kWindow,
  kCq,
  kSrq,
  kQp,
  kAddressHandle,
  kIndirectionTable,
  kCompletionCounter
};
inline constexpr size_t kObjectKinds = 9;

// What the software device serves.
inline constexpr uint32_t kMaxObjects[kObjectKinds] = {
    1 << 16,                // protection domains
    kMaxMemoryEntries / 2,  // regions
    kMaxMemoryEntries / 2,  // windows
    1 << 16,                // completion queues
    1 << 16,                // shared receive queues
    (1 << 16) - 1,          // queue pairs: the numbers that a slot has at least
    1 << 20,                // address handles
    1 << 12,                // tables of work queues
    1 << 16,                // completion counters
};
// dappled has another list: with contexts, and without tables of work queues and completion counters.
inline constexpr size_t kShownObjectKinds = 7;
constexpr ResourceKind resource_kind(ObjectKind kind) {
  return static_cast<ResourceKind>(static_cast<size_t>(kind) + 1);
}
static_assert(resource_kind(ObjectKind::kPd) == ResourceKind::kPd);
static_assert(resource_kind(ObjectKind::kRegion) == ResourceKind::kRegion);
static_assert(resource_kind(ObjectKind::kWindow) == ResourceKind::kWindow);
static_assert(resource_kind(ObjectKind::kCq) == ResourceKind::kCq);
static_assert(resource_kind(ObjectKind::kSrq) == ResourceKind::kSrq);
static_assert(resource_kind(ObjectKind::kQp) == ResourceKind::kQp);
static_assert(resource_kind(ObjectKind::kAddressHandle) == ResourceKind::kAddressHandle);
constexpr uint32_t most_objects(ObjectKind kind) {
  return kMaxObjects[static_cast<size_t>(kind)];
}

// The objects of a device in this process.
class DeviceObjects {
 public:
  // `limits` are not beyond kMaxObjects. `shown`: the counts that dappled sees, or null.
  explicit DeviceObjects(const DeviceAttributes& limits = {}, ResourceCounts* shown = nullptr);
  ~DeviceObjects() {
    if (shown_ != nullptr) shown_->device.store(0, std::memory_order_relaxed);
  }
  DeviceObjects(const DeviceObjects&) = delete;
  DeviceObjects& operator=(const DeviceObjects&) = delete;

  // False at the limit. Threads that take and give at the same time never see it too early or too late.
  bool take(ObjectKind kind);
  void give(ObjectKind kind, uint32_t count);
  uint32_t count(ObjectKind kind) const { return counts_[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }

  uint32_t most(ObjectKind kind) const { return most_[static_cast<size_t>(kind)]; }

  // Contexts that have joined. Guarded by DaemonWatch::contexts_mutex_.
  uint32_t contexts() const { return contexts_; }
  void set_contexts(uint32_t count);

 private:
  // A child of fork() leaves the parent's counts alone.
  void show(ResourceKind kind, uint32_t difference) {
    if (shown_ != nullptr && generation_ == ForkGeneration::now())
      shown_->counts[static_cast<size_t>(kind)].fetch_add(difference, std::memory_order_relaxed);
  }
  void show(ObjectKind kind, uint32_t difference) {
    if (static_cast<size_t>(kind) < kShownObjectKinds) show(resource_kind(kind), difference);
  }

  ResourceCounts* const shown_;
  const uint32_t generation_ = ForkGeneration::now();
  const uint32_t most_[kObjectKinds];
  uint32_t contexts_ = 0;
  std::atomic<uint32_t> counts_[kObjectKinds] = {};
};

class ContextObjects;

// An object counts for as long as it has one of these.
class CountedObject {
 public:
  CountedObject() = default;
  CountedObject(CountedObject&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), kind_(other.kind_) {}
  CountedObject& operator=(CountedObject&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~CountedObject();

  explicit operator bool() const { return owner_ != nullptr; }

 private:
  friend class ContextObjects;
  CountedObject(ContextObjects& owner, ObjectKind kind) : owner_(&owner), kind_(kind) {}

  ContextObjects* owner_ = nullptr;
  ObjectKind kind_ = ObjectKind::kPd;
};

// The part of a device's objects that belongs to one context.
class ContextObjects {
 public:
  // Empty at the device's limit.
  CountedObject take(ObjectKind kind);

  // Under DaemonWatch::contexts_mutex_. Nobody calls take() before join().
  void join(DeviceObjects& device);
  // The context ends, and its objects with it. Returns the device's.
  DeviceObjects& leave();
  DeviceObjects& device() { return *device_; }

 private:
  friend class CountedObject;
  void give(ObjectKind kind);

  DeviceObjects* device_ = nullptr;
  std::atomic<uint32_t> counts_[kObjectKinds] = {};
};

}  // namespace dapple::soft
