// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/same_host/ring.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kLinesAhead = 2;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// Bytes that the reader may keep to itself; the writer sees the rest as free.
constexpr uint64_t kKept = kRingBytes / 8;

// Entries begin at cache lines.
constexpr size_t entry_bytes(size_t packet) {
  return (sizeof(RingEntry) + packet + kLine - 1) / kLine * kLine;
}

// A packet, the unused end before it, and the place of the next entry.
constexpr size_t kMostNeeded = 2 * entry_bytes(kLongestRingPacket) + kLine;
static_assert(kMostNeeded + kKept <= kRingBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic_ref<uint32_t>::is_always_lock_free);

void fetch_to_write(const std::byte* line) {
#if defined(__x86_64__)
  // The compiler's own function would fetch a shared copy, because the oldest of these processors have no more.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

std::atomic_ref<uint32_t> size_of(const RingMemory& memory, uint64_t position) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(memory.data() + position % kRingBytes));
}

}  // namespace

int RingMemory::create(OwnedFd& file) {
  // A file beyond the program's limit would end it by a signal.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kFileBytes) return EFBIG;
  OwnedFd made(memfd_create("dapple-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return errno;
  // fallocate() reports a lack of memory; a first access would end in SIGBUS.
  if (fallocate(made.get(), 0, 0, kFileBytes) != 0 || fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) return errno;
  if (const int error = map_file(made.get()); error != 0) return error;
  file = std::move(made);
  return 0;
}

int RingMemory::map(int file) {
  struct stat status = {};
  if (fstat(file, &status) != 0 || status.st_size != static_cast<off_t>(kFileBytes)) return EINVAL;
  // The kernel would fill a hole at the first access, and end the program if no memory is left.
  if (status.st_blocks * 512 < static_cast<blkcnt_t>(kFileBytes)) return EINVAL;
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return EINVAL;
  return map_file(file);
}

int RingMemory::map_file(int file) {
  void* memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = static_cast<std::byte*>(memory);
  madvise(memory, kFileBytes, MADV_DONTFORK);
  return 0;
}

void RingMemory::unmap() {
  if (memory_ != nullptr) munmap(memory_, kFileBytes);
  memory_ = nullptr;
}

std::byte* RingWriter::reserve(size_t size) {
  assert(size > 0 && size <= kLongestRingPacket);
  const size_t bytes = entry_bytes(size);
  const size_t rest = kRingBytes - written_ % kRingBytes;
  // The place of the next entry is cleared, too.
  const size_t needed = (rest < bytes ? rest : 0) + bytes + kLine;
  if (written_ + needed - read_ > kRingBytes) {
    const uint64_t read = memory_.control().read.load(std::memory_order_acquire);
    // No reader of ours goes back, or ahead of the writer.
    if (read < read_ || read > written_) return nullptr;
    read_ = read;
    if (written_ + needed - read_ > kRingBytes) return nullptr;
  }
  if (rest < bytes) {
    auto* entry = reinterpret_cast<RingEntry*>(memory_.data() + written_ % kRingBytes);
    entry->kind = EntryKind::kWrap;
    size_of(memory_, written_ + rest).store(0, std::memory_order_relaxed);
    size_of(memory_, written_).store(sizeof(RingEntry), std::memory_order_release);
    written_ += rest;
  }
  reserved_ = size;
  return memory_.data() + written_ % kRingBytes + sizeof(RingEntry);
}

void RingWriter::commit(const uint8_t source[16], const uint8_t destination[16], EntryKind kind) {
  auto* entry = reinterpret_cast<RingEntry*>(memory_.data() + written_ % kRingBytes);
  entry->kind = kind;
  memcpy(entry->source, source, sizeof entry->source);
  memcpy(entry->destination, destination, sizeof entry->destination);
  const uint64_t next = written_ + entry_bytes(reserved_);
  size_of(memory_, next).store(0, std::memory_order_relaxed);
  size_of(memory_, written_).store(static_cast<uint32_t>(reserved_), std::memory_order_release);
  written_ = next;
  // The reader's CPU has had these lines since the last round. They come back while the next packet is made.
  for (size_t line = 1; line <= kLinesAhead; line++)
    fetch_to_write(memory_.data() + (next + line * kLine) % kRingBytes);
}

bool RingWriter::must_wake() {
  // Before: the entry's size. After: the reader's mark. RingReader::sleep() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint32_t>& sleeping = memory_.control().sleeping;
  return sleeping.load(std::memory_order_relaxed) != 0 && sleeping.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingWriter::wait_for_room() {
  memory_.control().waiting.store(1, std::memory_order_relaxed);
  // RingReader::release() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return written_ - memory_.control().read.load(std::memory_order_acquire) > kRingBytes - kMostNeeded;
}

RingReader::Next RingReader::next(RingPacket& packet) {
  return look(read_, packet);
}

RingReader::Next RingReader::peek(RingPacket& packet) const {
  uint64_t position = read_;
  return look(position, packet);
}

// Moves `position` behind the packet that it finds there.
inline RingReader::Next RingReader::look(uint64_t& position, RingPacket& packet) const {
  for (int wraps = 0; wraps < 2; wraps++) {
    const size_t place = position % kRingBytes;
    const uint32_t size = size_of(memory_, position).load(std::memory_order_acquire);
    if (size == 0) return Next::kNothing;
    const auto* entry = reinterpret_cast<const RingEntry*>(memory_.data() + place);
    packet.kind = entry->kind;
    if (packet.kind == EntryKind::kWrap) {
      position += kRingBytes - place;
      continue;
    }
    if (size > kLongestRingPacket || place + entry_bytes(size) > kRingBytes) return Next::kBroken;
    memcpy(packet.source, entry->source, sizeof packet.source);
    memcpy(packet.destination, entry->destination, sizeof packet.destination);
    packet.bytes = {memory_.data() + place + sizeof(RingEntry), size};
    memcpy(packet.headers, packet.bytes.data(), std::min<size_t>(size, sizeof packet.headers));
    position += entry_bytes(size);
    return Next::kPacket;
  }
  return Next::kBroken;
}

bool RingReader::release() {
  if (read_ - released_ < kKept) return false;
  memory_.control().read.store(read_, std::memory_order_release);
  released_ = read_;
  // RingWriter::wait_for_room() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint32_t>& waiting = memory_.control().waiting;
  return waiting.load(std::memory_order_relaxed) != 0 && waiting.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingReader::empty() const {
  return size_of(memory_, read_).load(std::memory_order_acquire) == 0;
}

void RingReader::sleep() {
  memory_.control().sleeping.store(1, std::memory_order_relaxed);
  // RingWriter::must_wake() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace dapple::soft
