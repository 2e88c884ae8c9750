// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The base of the verbs objects: dapple-run --check keeps the memory of an object that has ended, so that a later use
// of the object is recognised and reads no memory of others.
#pragma once

#include <atomic>
#include <new>

namespace dapple::soft {

class KeptMemory {
 public:
  static void operator delete(void* memory) {
    if (const Keep keep = keep_.load(std::memory_order_relaxed)) return keep(memory);
    ::operator delete(memory);
  }

  // From now on keep() gets the memory of each object that ends. It may call give_back() later. Call it once.
  using Keep = void (*)(void* memory);
  static void keep_by(Keep keep) { keep_.store(keep, std::memory_order_relaxed); }
  static void give_back(void* memory) { ::operator delete(memory); }

 private:
  static inline constinit std::atomic<Keep> keep_{nullptr};
};

}  // namespace dapple::soft
