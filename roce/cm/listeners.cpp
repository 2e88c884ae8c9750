// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/listeners.hpp"

#include <algorithm>
#include <cassert>
#include <new>

namespace dapple::roce::cm {

namespace {

bool is_for(const ListenParameters& listener, const Wanted& wanted) {
  if (((listener.service_id ^ wanted.service_id) & listener.service_mask) != 0) return false;
  if (listener.device && *listener.device != wanted.device) return false;
  if (listener.address) return *listener.address == wanted.address;
  return listener.family == Family::kBoth || (listener.family == Family::kIpv4) == is_ipv4(wanted.address);
}

// An address outweighs a device, which outweighs a family.
unsigned narrowness(const ListenParameters& listener) {
  return (listener.address ? 4U : 0U) + (listener.device ? 2U : 0U) + (listener.family != Family::kBoth ? 1U : 0U);
}

}  // namespace

bool Listeners::grow() {
  const uint32_t room = std::min(std::max<uint32_t>(2 * room_, 16), most_);
  if (room <= room_) return false;
  std::unique_ptr<Listener[]> grown(new (std::nothrow) Listener[room]);
  if (grown == nullptr) return false;
  std::copy_n(listeners_.get(), size_, grown.get());
  listeners_ = std::move(grown);
  room_ = room;
  return true;
}

Listener* Listeners::add(const ListenParameters& parameters) {
  uint32_t place = 0;
  while (place < size_ && listeners_[place].id != kNoId) ++place;
  if (place == room_ && !grow()) return nullptr;
  size_ = std::max(size_, place + 1);
  if (++generation_ == 0) ++generation_;
  ++count_;
  listeners_[place] = {static_cast<Id>(generation_) << 32 | kMark | place, 0, {}, parameters};
  assert_consistent();
  return &listeners_[place];
}

void Listeners::remove(Listener& listener) {
  assert(find(listener.id) == &listener);
  listener.id = kNoId;
  --count_;
  while (size_ > 0 && listeners_[size_ - 1].id == kNoId) --size_;
  assert_consistent();
}

void Listeners::assert_consistent() const {
  assert(count_ <= size_ && size_ <= room_ && room_ <= most_);
  assert((count_ == 0) == (size_ == 0));
}

Listener* Listeners::find(Id id) const {
  const uint32_t place = static_cast<uint32_t>(id & ~kMark);
  if (!is_listener(id) || place >= size_ || listeners_[place].id != id) return nullptr;
  return &listeners_[place];
}

bool Listeners::has_same(const ListenParameters& parameters) const {
  return std::any_of(listeners_.get(), listeners_.get() + size_, [&](const Listener& listener) {
    const ListenParameters& other = listener.parameters;
    return listener.id != kNoId && other.service_id == parameters.service_id &&
           other.service_mask == parameters.service_mask && other.device == parameters.device &&
           other.address == parameters.address && other.family == parameters.family;
  });
}

Listener* Listeners::match(const Wanted& wanted) const {
  Listener* best = nullptr;
  for (uint32_t i = 0; i < size_; ++i) {
    Listener& listener = listeners_[i];
    if (listener.id == kNoId || !is_for(listener.parameters, wanted)) continue;
    if (best == nullptr || narrowness(listener.parameters) > narrowness(best->parameters)) best = &listener;
  }
  return best;
}

}  // namespace dapple::roce::cm
