// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/shown_memory.hpp"

namespace dapple::soft {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;
using roce::Segment;
using Kind = DeviceAccess::Kind;

namespace {

constexpr const char* kStoresReceived = "the device stores received bytes";

uint32_t first_key(std::span<const Segment> segments) {
  return segments.empty() ? 0 : segments.front().lkey;
}

}  // namespace

// Shows each piece to the sanitizer.
class ShownMemory::Look final : public MemoryTable::Borrower {
 public:
  Look(Sanitizer& sanitizer, const DeviceAccess& access) : sanitizer_(sanitizer), access_(access) {}

  bool use(std::byte* memory, size_t, size_t size) override {
    sanitizer_.before(access_, memory, size);
    // Before the store: a thread that polls the memory may look at it at once.
    if (access_.kind != Kind::kRead) sanitizer_.stored(memory, size);
    return true;
  }
  // A sanitizer knows nothing of a GPU's memory.
  bool pass_gpu() override { return true; }

 private:
  Sanitizer& sanitizer_;
  const DeviceAccess& access_;
};

void ShownMemory::look(const DeviceAccess& access, const RemoteRange& range, uint32_t right) {
  Look look(sanitizer_, access);
  table_.lend_to_peer(access.who, range, right, look);
}

void ShownMemory::look(const DeviceAccess& access, std::span<const Segment> segments, uint64_t offset, size_t size) {
  Look look(sanitizer_, access);
  table_.lend(access.who, segments, offset, size, access.kind != Kind::kRead, look);
}

Fault ShownMemory::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  look({who, range.rkey, Kind::kWrite, "a peer writes", true}, range, roce::kRemoteWrite);
  // The packet's bytes count as defined; otherwise a copy of them would not.
  sanitizer_.stored(from, range.length);
  return table_.write(who, range, from);
}

Fault ShownMemory::read(Accessor who, const RemoteRange& range, std::byte* to) {
  look({who, range.rkey, Kind::kRead, "a peer reads", true}, range, roce::kRemoteRead);
  const Fault fault = table_.read(who, range, to);
  // The copy counts as defined, so that undefined bytes are reported only once.
  if (fault == Fault::kNone) sanitizer_.stored(to, range.length);
  return fault;
}

Fault ShownMemory::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                                uint64_t& original) {
  look({who, rkey, Kind::kUpdate, "a peer's compare and swap", true}, {rkey, address, sizeof swap},
       roce::kRemoteAtomic);
  return table_.compare_swap(who, rkey, address, compare, swap, original);
}

Fault ShownMemory::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  look({who, rkey, Kind::kUpdate, "a peer's fetch and add", true}, {rkey, address, sizeof add}, roce::kRemoteAtomic);
  return table_.fetch_add(who, rkey, address, add, original);
}

Fault ShownMemory::atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) {
  look({who, rkey, Kind::kWrite, "a peer's atomic write", true}, {rkey, address, sizeof value}, roce::kRemoteWrite);
  return table_.atomic_write(who, rkey, address, value);
}

Fault ShownMemory::gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to,
                          size_t size) {
  look({who, first_key(segments), Kind::kRead, "the device sends bytes"}, segments, offset, size);
  const Fault fault = table_.gather(who, segments, offset, to, size);
  if (fault == Fault::kNone) sanitizer_.stored(to, size);
  return fault;
}

Fault ShownMemory::scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                           size_t size) {
  look({who, first_key(segments), Kind::kWrite, kStoresReceived}, segments, offset, size);
  sanitizer_.stored(from, size);
  return table_.scatter(who, segments, offset, from, size);
}

Fault ShownMemory::scatter_loan(Accessor who, std::span<const Segment> segments, uint64_t offset,
                                const roce::Loan& loan) {
  look({who, first_key(segments), Kind::kWrite, kStoresReceived}, segments, offset, loan.length());
  return table_.scatter_loan(who, segments, offset, loan);
}

}  // namespace dapple::soft
