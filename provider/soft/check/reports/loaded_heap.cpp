// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/loaded_heap.hpp"

#include <dlfcn.h>

#include <utility>

namespace dapple::soft::check {

const Heap* loaded_heap() {
  static const Heap* const found = [] {
    const auto* candidate = static_cast<const Heap*>(dlsym(RTLD_DEFAULT, kHeapSymbol));
    return candidate != nullptr && candidate->version == kHeapVersion ? candidate : nullptr;
  }();
  return found;
}

namespace {

// Without that library.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool paused_here = false;

}  // namespace

bool pause_heap(bool paused) {
  const Heap* heap = loaded_heap();
  return heap != nullptr ? heap->pause(paused) : std::exchange(paused_here, paused);
}

bool heap_is_paused() {
  return paused_here;
}

}  // namespace dapple::soft::check
