// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <new>

namespace dapple::soft {

// For an object in static storage that threads use until the process ends: it is never destroyed.
template <typename Object>
class Immortal {
 public:
  Immortal() : object_(new (room_) Object) {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  Object& operator*() { return *object_; }

 private:
  alignas(Object) std::byte room_[sizeof(Object)];
  Object* const object_;
};

}  // namespace dapple::soft
