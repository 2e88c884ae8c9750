// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <errno.h>
#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "tests/soak/end.hpp"

namespace dapple::soak {

// Zeroed pages that return to the system with their owner.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(size_t size) : size_(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) call_failed("mmap", errno);
    memory_ = static_cast<unsigned char*>(memory);
  }
  Mapping(Mapping&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  unsigned char* get() const { return memory_; }
  size_t size() const { return size_; }

 private:
  unsigned char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dapple::soak
