// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/loaded_heap.hpp"

#include <dlfcn.h>

namespace dapple::soft::check {

const Heap* loaded_heap() {
  static const Heap* const found = [] {
    const auto* candidate = static_cast<const Heap*>(dlsym(RTLD_DEFAULT, kHeapSymbol));
    return candidate != nullptr && candidate->version == kHeapVersion ? candidate : nullptr;
  }();
  return found;
}

bool pause_heap(bool paused) {
  const Heap* heap = loaded_heap();
  return heap != nullptr && heap->pause(paused);
}

}  // namespace dapple::soft::check
