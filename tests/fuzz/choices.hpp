// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What an input of a fuzzer chooses.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapple::fuzz {

// Reads the input; after its end, zeros.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool is_over() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint32_t below(uint32_t count) { return (byte() | static_cast<uint32_t>(byte()) << 8) % count; }
  uint32_t word() { return below(0x10000) << 16 | below(0x10000); }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace dapple::fuzz
