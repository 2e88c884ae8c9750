// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What CheckingMemory does with memory that the table lends to it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

// Looks whether pieces of memory are there, and takes note of those that the device is going to change. The memory
// itself is going to be used, so that nothing there is withheld any more, except for a result (kStores).
class Probe final : public MemoryTable::Borrower {
 public:
  enum class Use : uint8_t { kReads, kWrites, kStores };

  Probe(Checker& checker, Use use) : checker_(checker), use_(use), is_write_(use != Use::kReads) {}

  bool use(std::byte* memory, size_t done, size_t size) override {
    assert(gone_ == nullptr);
    if (use_ != Use::kStores) checker_.withheld.yield(memory, size);
    // The program could not have mapped other memory there without opening the pages.
    if (!ClosedPages::has(memory, size) && !checker_.mapped.has(memory, size, is_write_)) {
      gone_ = memory;
      before_ = done;
      size_ = size;
      return false;
    }
    note(memory, size);
    return true;
  }
  // The table has just seen that it is there. If it goes away, the access fails.
  bool use_on_demand(std::byte* memory, size_t, size_t size) override {
    if (use_ != Use::kStores) checker_.withheld.yield(memory, size);
    note(memory, size);
    return true;
  }
  // A GPU's library finds out whether its memory is there. The program does not touch it by the CPU.
  bool pass_gpu() override { return true; }
  // The device has stored there: a copy that was made meanwhile may have old bytes.
  void stored() const {
    for (const std::span<std::byte> piece : changed_) checker_.overwritten(piece.data(), piece.size());
  }
  std::span<const std::span<std::byte>> changed() const { return changed_; }
  const std::byte* gone() const { return gone_; }
  size_t size() const { return size_; }
  // The key of the memory that is gone, if the transfer begins at `offset` of these segments.
  uint32_t key(std::span<const roce::Segment> segments, uint64_t offset) const {
    uint64_t end = 0;
    for (const roce::Segment& segment : segments) {
      end += segment.length;
      if (offset + before_ < end) return segment.lkey;
    }
    return 0;
  }

 private:
  void note(std::byte* memory, size_t size) {
    if (!is_write_) return;
    checker_.overwritten(memory, size);
    changed_.emplace_back(memory, size);
  }

  Checker& checker_;
  const Use use_;
  const bool is_write_;
  std::vector<std::span<std::byte>> changed_;
  const std::byte* gone_ = nullptr;
  size_t before_ = 0;  // bytes of the transfer
  size_t size_ = 0;
};

// Announces a peer's atomic to ThreadSanitizer.
class Update final : public MemoryTable::Borrower {
 public:
  Update(AnnouncedPeers& peers, size_t word) : peers_(peers), word_(word) {}
  bool use(std::byte* memory, size_t, size_t size) override {
    if (size == word_ && reinterpret_cast<uintptr_t>(memory) % word_ == 0) peers_.update(memory);
    return true;
  }
  bool use_on_demand(std::byte*, size_t, size_t) override { return true; }
  bool pass_gpu() override { return true; }

 private:
  AnnouncedPeers& peers_;
  const size_t word_;
};

// Stores bytes apart until the program polls the completion of their request. Ends the loan if they are to be stored in
// the memory itself.
class Withhold final : public MemoryTable::Borrower {
 public:
  Withhold(WithheldBytes& withheld, uint32_t qpn, const std::byte* from)
      : withheld_(withheld), qpn_(qpn), from_(from) {}
  bool use(std::byte* memory, size_t done, size_t size) override {
    if (!withheld_.store(qpn_, memory, from_ + done, size)) return false;
    stored_.emplace_back(memory, size);
    return true;
  }
  // The program polls the completion later, and may have unmapped the memory then.
  bool use_on_demand(std::byte*, size_t, size_t) override { return false; }
  // All of the packet's bytes go into the memory, because some of them have to, such as those for a null region.
  void give_up() {
    for (const std::span<std::byte> piece : stored_) withheld_.yield(piece.data(), piece.size());
  }

 private:
  WithheldBytes& withheld_;
  const uint32_t qpn_;
  const std::byte* const from_;
  std::vector<std::span<std::byte>> stored_;
};

// Looks for messages that are lost because the device stores another one.
class Overwrite final : public MemoryTable::Borrower {
 public:
  Overwrite(WithheldBytes& withheld, const std::byte* from) : withheld_(withheld), from_(from) {}
  bool use(std::byte* memory, size_t done, size_t size) override {
    if (!lost_) lost_ = withheld_.overwrite(memory, from_ + done, size);
    return true;
  }
  bool use_on_demand(std::byte*, size_t, size_t) override { return true; }
  bool pass_gpu() override { return true; }
  const std::optional<WithheldBytes::Overwritten>& lost() const { return lost_; }

 private:
  WithheldBytes& withheld_;
  const std::byte* const from_;
  std::optional<WithheldBytes::Overwritten> lost_;
};

// Finds the place of a peer's range.
class Address final : public MemoryTable::Borrower {
 public:
  bool use(std::byte* memory, size_t, size_t) override {
    begin_ = reinterpret_cast<uintptr_t>(memory);
    return true;
  }
  uintptr_t begin() const { return begin_; }

 private:
  uintptr_t begin_ = 0;
};

}  // namespace dapple::soft::check
