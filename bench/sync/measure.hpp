// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The common parts of the benchmarks in this folder: memory in a known state, and the time of an operation on it.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <cstddef>

#include "coherence/cache.hpp"

namespace dapple::bench {

constexpr size_t kLineBytes = 64;

inline int64_t now_ns(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// This thread's own CPU time, which leaves out other programs on the machine.
inline int64_t thread_ns() {
  return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

inline int64_t wall_ns() {
  return now_ns(CLOCK_MONOTONIC);
}

// Memory in pages of 4 KiB that are all present. Ends the program without memory.
class Arena {
 public:
  explicit Arena(size_t size) : size_(size) {
    void* const base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) abort();
    base_ = static_cast<unsigned char*>(base);
  }
  ~Arena() { munmap(base_, size_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  unsigned char* base() const { return base_; }
  size_t size() const { return size_; }

  // make_dirty() changes every line; make_clean() leaves every line equal to memory. Afterwards the lines are in the
  // caches, as far as they fit.
  void make_dirty() const {
    for (size_t i = 0; i < size_; i += kLineBytes) {
      volatile unsigned char& byte = base_[i];
      byte = static_cast<unsigned char>(byte + 1);
    }
  }
  void make_clean() const {
    const coherence::BackEnd& back_end = coherence::cpu_back_end();
    back_end.clean(base_, size_);
    back_end.complete_maintenance();
    for (size_t i = 0; i < size_; i += kLineBytes) (void)*reinterpret_cast<volatile unsigned char*>(base_ + i);
  }

 private:
  unsigned char* base_;
  size_t size_;
};

// The time that operation(address, length) takes over the arena in pieces of that length, once.
template <class Operation>
double pass_ns(const Arena& arena, size_t length, Operation operation, int64_t (*clock_ns)() = thread_ns) {
  const int64_t begin = clock_ns();
  for (size_t i = 0; i + length <= arena.size(); i += length) operation(arena.base() + i, length);
  return static_cast<double>(clock_ns() - begin);
}

}  // namespace dapple::bench
