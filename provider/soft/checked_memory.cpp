// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/checked_memory.hpp"

#include <stdio.h>
#include <unistd.h>

namespace dapple::soft {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;
using roce::Segment;

// Shows each piece to the sanitizer.
class CheckedMemory::Look final : public MemoryTable::Borrower {
 public:
  Look(const AddressSanitizer& sanitizer, Accessor who, uint32_t key, bool is_write, const char* what)
      : sanitizer_(sanitizer), who_(who), key_(key), is_write_(is_write), what_(what) {}

  bool use(std::byte* memory, size_t, size_t size) override {
    void* place = sanitizer_.poisoned(memory, size);
    if (place == nullptr) return true;
    // Before the report, which may end the program.
    char line[160];
    const int length = snprintf(line, sizeof line, "dapple: %s, %zu bytes at %p, of queue pair 0x%x with key 0x%x:\n",
                                what_, size, static_cast<void*>(memory), who_.qpn, key_);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<size_t>(length));
    sanitizer_.report(place, size - static_cast<size_t>(static_cast<std::byte*>(place) - memory), is_write_);
    return true;
  }

 private:
  const AddressSanitizer& sanitizer_;
  const Accessor who_;
  const uint32_t key_;
  const bool is_write_;
  const char* const what_;
};

void CheckedMemory::look(Accessor who, const RemoteRange& range, uint32_t access, const char* what) {
  Look look(sanitizer_, who, range.rkey, (access & roce::kRemoteRead) == 0, what);
  table_.lend_to_peer(who, range, access, look);
}

void CheckedMemory::look(Accessor who, std::span<const Segment> segments, uint64_t offset, size_t size, bool write) {
  const uint32_t key = segments.empty() ? 0 : segments.front().lkey;
  Look look(sanitizer_, who, key, write, write ? "the device stores received bytes" : "the device sends bytes");
  table_.lend(who, segments, offset, size, write, look);
}

Fault CheckedMemory::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  return table_.check_remote(who, range, access);
}

Fault CheckedMemory::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  look(who, range, roce::kRemoteWrite, "a peer writes");
  return table_.write(who, range, from);
}

Fault CheckedMemory::read(Accessor who, const RemoteRange& range, std::byte* to) {
  look(who, range, roce::kRemoteRead, "a peer reads");
  return table_.read(who, range, to);
}

Fault CheckedMemory::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                                  uint64_t& original) {
  look(who, {rkey, address, sizeof swap}, roce::kRemoteAtomic, "a peer's compare and swap");
  return table_.compare_swap(who, rkey, address, compare, swap, original);
}

Fault CheckedMemory::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  look(who, {rkey, address, sizeof add}, roce::kRemoteAtomic, "a peer's fetch and add");
  return table_.fetch_add(who, rkey, address, add, original);
}

Fault CheckedMemory::atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) {
  look(who, {rkey, address, sizeof value}, roce::kRemoteWrite, "a peer's atomic write");
  return table_.atomic_write(who, rkey, address, value);
}

Fault CheckedMemory::flush(Accessor who, const RemoteRange& range, uint32_t type) {
  return table_.flush(who, range, type);
}

Fault CheckedMemory::check_local(Accessor who, std::span<const Segment> segments, bool write) {
  return table_.check_local(who, segments, write);
}

Fault CheckedMemory::gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to,
                            size_t size) {
  look(who, segments, offset, size, false);
  return table_.gather(who, segments, offset, to, size);
}

Fault CheckedMemory::scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                             size_t size) {
  look(who, segments, offset, size, true);
  return table_.scatter(who, segments, offset, from, size);
}

Fault CheckedMemory::bind_window(Accessor who, const roce::WindowBind& bind) {
  return table_.bind_window(who, bind);
}

Fault CheckedMemory::invalidate_local(Accessor who, uint32_t rkey) {
  return table_.invalidate_local(who, rkey);
}

Fault CheckedMemory::invalidate_remote(Accessor who, uint32_t rkey) {
  return table_.invalidate_remote(who, rkey);
}

}  // namespace dapple::soft
