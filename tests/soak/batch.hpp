// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transfers that both sides make between two meetings. Both sides know them from the seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/soak/random.hpp"

namespace dapple::soak {

inline constexpr uint32_t kMaxTransfers = 16;
inline constexpr uint32_t kMessageSize = 8192;

enum class Operation { kSend, kWrite, kRead, kAtomic };

struct Transfer {
  Operation operation = Operation::kSend;
  uint32_t size = 0;  // of a Send: of its pattern, without the header
  size_t from = 0;    // places within the parts of the data area
  size_t to = 0;
  uint64_t value = 0;  // of an atomic operation
};

struct Side {
  uint32_t count = 0;
  Transfer transfers[kMaxTransfers];
};

struct Batch {
  uint64_t seed = 0;
  Side sides[2];  // the server's, the client's

  // The seed of the bytes in a part of a side's memory.
  uint64_t bytes(uint32_t side, uint32_t part) const { return mix(seed + 8 * part + side); }
};

// part: the size of each part of the data area.
Batch plan_batch(uint64_t seed, uint64_t number, size_t part, bool atomics);

// The places in a data area.
struct Layout {
  size_t part = 0;

  size_t written() const { return 0; }  // by the peer
  size_t write_source() const { return part; }
  size_t read_source() const { return 2 * part; }
  size_t read_into() const { return 3 * part; }
  size_t word() const { return 4 * part; }  // of the peer's atomic operations
  size_t result(uint32_t i) const { return word() + 8 * (size_t{i} + 1); }
  size_t size() const { return result(kMaxTransfers); }
};

}  // namespace dapple::soak
