// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/mapped_memory.hpp"

#include <cassert>
#include <cerrno>

#include "provider/common/clock.hpp"
#include "provider/common/thread_object.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/memory/mappings.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft::check {
namespace {

struct Known {
  uintptr_t begin = 0, end = 0;
  bool writable = false;
  bool executable = false;
  bool stays = false;  // false: others may take it away, so each use needs a look
  // The C library may take other memory than its heap's away by itself, such as the stack of a thread that has ended.
  bool is_heap = false;
  uint64_t looked_ns = 0;

  bool is_usable(bool write, uint64_t now) const {
    return stays && (writable || !write) && (is_heap || now - looked_ns < kFresh);
  }

 private:
  static constexpr uint64_t kFresh = 10'000'000;  // nanoseconds
};

uint64_t coarse_now() {
  return now_ns(CLOCK_MONOTONIC_COARSE);
}

// What a thread knows of the process' memory.
struct Cache {
  static constexpr size_t kMax = 8;
  const MappedMemory* of = nullptr;
  uint64_t changes = 0;
  size_t count = 0;  // of `known` that are valid
  size_t next = 0;   // of `known` to be replaced
  Known known[kMax];

  Known* find(uintptr_t begin, uintptr_t end) {
    for (size_t i = 0; i < count; i++)
      if (known[i].begin <= begin && end <= known[i].end) return &known[i];
    return nullptr;
  }
  void add(const Known& one) {
    known[next] = one;
    next = (next + 1) % kMax;
    if (count < kMax) count++;
    assert(one.begin <= one.end && next < kMax && count <= kMax);
  }
};

// The run of private mappings with the same rights that holds these bytes, or the bytes themselves.
Known look(uintptr_t begin, uintptr_t end) {
  Known run;
  Mappings mappings;
  for (Mapping mapping; mappings.next(mapping) && mapping.begin < end;) {
    const bool writable = mapping.rights[1] == 'w', executable = mapping.rights[2] == 'x';
    if (!mapping.is_private_memory() || mapping.rights[0] != 'r') {
      run = {};
    } else if (run.end == mapping.begin && run.writable == writable && run.executable == executable &&
               run.is_heap == mapping.is_heap()) {
      run.end = mapping.end;
    } else {
      run = {mapping.begin, mapping.end, writable, executable, true, mapping.is_heap(), coarse_now()};
    }
  }
  if (run.begin <= begin && end <= run.end) return run;
  return {begin, end, false, false, false, false, 0};
}

// Whether one mapping holds these bytes and has the right.
bool is_mapped(uintptr_t begin, uintptr_t end, bool write) {
  Mappings mappings;
  for (Mapping mapping; mappings.next(mapping) && mapping.begin <= begin;)
    if (end <= mapping.end) return mapping.rights[0] == 'r' && (!write || mapping.rights[1] == 'w');
  return false;
}

bool is_there(const std::byte* memory, size_t size, bool write) {
  const int error = populate_range(memory, size, write);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  // A dma-buf: the kernel cannot bring in its pages by madvise(), and they stay.
  return error == 0 || (error == EINVAL && is_mapped(begin, begin + size, write));
}

}  // namespace

bool MappedMemory::is_plain(const std::byte* memory, size_t size) {
  if (!remembers_.load(std::memory_order_relaxed) || !has(memory, size, true)) return false;
  Cache* const cache = ThreadObject<Cache>::made();
  if (cache == nullptr) return false;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const Known* const known = cache->find(begin, begin + size);
  return known != nullptr && known->stays && known->writable && !known->executable;
}

bool MappedMemory::has(const std::byte* memory, size_t size, bool write) {
  if (!remembers_.load(std::memory_order_relaxed)) return is_there(memory, size, write);
  const uint64_t changes = changes_.load();
  Cache* const cache = ThreadObject<Cache>::get();
  if (cache == nullptr) return is_there(memory, size, write);
  if (cache->of != this || cache->changes != changes) {
    cache->of = this;
    cache->changes = changes;
    cache->count = cache->next = 0;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  Known* const known = cache->find(begin, begin + size);
  if (known != nullptr && known->is_usable(write, coarse_now())) return true;
  if (!is_there(memory, size, write)) return false;
  if (known == nullptr) {
    cache->add(look(begin, begin + size));
  } else if (known->stays) {
    *known = look(begin, begin + size);
  }
  return true;
}

bool MappedMemory::is_usable(const std::byte* memory, size_t size, bool write) {
  Sanitizer* const sanitizer = Sanitizer::of_program();
  return has(memory, size, write) && (sanitizer == nullptr || sanitizer->forbidden(memory, size) == nullptr);
}

}  // namespace dapple::soft::check
