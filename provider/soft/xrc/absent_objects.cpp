// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/absent_objects.hpp"

#include <cstddef>
#include <new>

namespace dapple::soft {
namespace {

// Threads use them until the process ends, so they are never destroyed.
template <typename Object>
Object& immortal() {
  alignas(Object) static std::byte room[sizeof(Object)];
  static Object* const object = new (room) Object;
  return *object;
}

}  // namespace

Cq& absent_cq() {
  return immortal<Cq>();
}

Pd& absent_pd() {
  return immortal<Pd>();
}

}  // namespace dapple::soft
