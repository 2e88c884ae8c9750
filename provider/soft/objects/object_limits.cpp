// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/object_limits.hpp"

namespace dapple::soft {

DeviceObjects::DeviceObjects(const DeviceAttributes& limits, ResourceCounts* shown)
    : shown_(shown),
      most_{limits.max_pd,
            limits.max_mr,
            limits.max_mw,
            limits.max_cq,
            limits.max_srq,
            limits.max_qp,
            limits.max_ah,
            most_objects(ObjectKind::kIndirectionTable),
            most_objects(ObjectKind::kCompletionCounter)} {
  static_assert(kObjectKinds == 9);
  for (size_t i = 0; i < kObjectKinds; ++i) assert(most_[i] <= kMaxObjects[i]);
}

bool DeviceObjects::take(ObjectKind kind) {
  std::atomic<uint32_t>& count = counts_[static_cast<size_t>(kind)];
  uint32_t now = count.load(std::memory_order_relaxed);
  do {
    if (now >= most_[static_cast<size_t>(kind)]) return false;
  } while (!count.compare_exchange_weak(now, now + 1, std::memory_order_relaxed));
  show(kind, 1);
  return true;
}

void DeviceObjects::give(ObjectKind kind, uint32_t count) {
  [[maybe_unused]] const uint32_t before =
      counts_[static_cast<size_t>(kind)].fetch_sub(count, std::memory_order_relaxed);
  assert(before >= count);
  show(kind, 0 - count);
}

void DeviceObjects::set_contexts(uint32_t count) {
  show(ResourceKind::kContext, count - contexts_);
  contexts_ = count;
}

CountedObject::~CountedObject() {
  if (owner_ != nullptr) owner_->give(kind_);
}

CountedObject ContextObjects::take(ObjectKind kind) {
  assert(device_ != nullptr);
  if (!device_->take(kind)) return {};
  counts_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  return {*this, kind};
}

void ContextObjects::give(ObjectKind kind) {
  std::atomic<uint32_t>& count = counts_[static_cast<size_t>(kind)];
  uint32_t now = count.load(std::memory_order_relaxed);
  do {
    // The program destroys an object of a device that it has closed, or another thread closes it: leave() has given
    // the object back.
    if (now == 0) return;
  } while (!count.compare_exchange_weak(now, now - 1, std::memory_order_relaxed));
  device_->give(kind, 1);
}

void ContextObjects::join(DeviceObjects& device) {
  device_ = &device;
  device.set_contexts(device.contexts() + 1);
}

DeviceObjects& ContextObjects::leave() {
  assert(device_ != nullptr && device_->contexts() > 0);
  DeviceObjects& device = *device_;
  device.set_contexts(device.contexts() - 1);
  for (size_t i = 0; i < kObjectKinds; ++i) {
    device.give(static_cast<ObjectKind>(i), counts_[i].exchange(0, std::memory_order_relaxed));
  }
  return device;
}

}  // namespace dapple::soft
