// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_FAULTS: loss, duplication, reordering, damage and delay of the packets that arrive, and the order in which
// their bytes are placed, by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "provider/soft/faults/fault_word.hpp"
#include "provider/system/problem.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {

struct FaultSettings {
  // Probabilities of each packet, from 0 to 1.
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  uint64_t delay_ns = 0;
  // order=random: see disordered_writes.hpp.
  bool disorders_writes = false;
  uint64_t seed = 1;  // used if the process has no seed either
  // dapple-run's exit code if a planned fault has not come true; 0: that of the program.
  uint8_t missed = 0;

  // False: packets arrive as they are.
  bool disturbs_packets() const { return drop > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || delay_ns > 0; }
};

// "drop=0.01,delay=1ms,dup=0.001,reorder=0.01,corrupt=0.001,seed=7"; delays in ns, us, ms or s, at most 10 s. Without
// seed=, the process' seed counts. Words of the plan (fault_plan.hpp) are checked, too.
bool parse_faults(const char* text, FaultSettings& settings, Problem& problem);

// DAPPLE_FAULTS of this process; no faults if it is malformed, because then no device can be opened.
const FaultSettings& program_faults();

// The outcome for one packet.
struct Fate {
  bool dropped = false;
  bool duplicated = false;
  bool reordered = false;
  uint32_t damaged_bit = UINT32_MAX;  // of the packet; UINT32_MAX: none
  uint64_t delay_ns = 0;
};

// One seed gives one sequence of fates.
class FaultSource {
 public:
  explicit FaultSource(const FaultSettings& settings) : settings_(settings), random_(settings.seed) {}
  Fate next(size_t packet_size);

 private:
  FaultSettings settings_;
  RandomSequence random_;
};

// Packets in transit. Bounded: a packet without room is lost. For one thread at a time.
class DelayQueue {
 public:
  static constexpr size_t kPlaces = 1024;
  static constexpr size_t kPacketSize = 4096 + 256;
  struct Packet {
    uint64_t due = 0;
    uint64_t order = 0;
    size_t size = 0;
    alignas(8) std::byte meta[96];
    std::byte bytes[kPacketSize];
  };

  // Null without memory.
  static std::unique_ptr<DelayQueue> create();
  bool put(uint64_t due, std::span<const std::byte> meta, std::span<const std::byte> bytes);
  // The earliest packet, if it is due; it stays valid until the next put().
  const Packet* take(uint64_t now);
  // The time at which take() has a packet; UINT64_MAX if there is none.
  uint64_t next_due() const;

 private:
  DelayQueue() = default;
  // A heap by (due, order); entries after count_ are free.
  std::unique_ptr<Packet[]> packets_;
  Packet* heap_[kPlaces];
  size_t count_ = 0;
  uint64_t order_ = 0;
};

}  // namespace dapple::soft
