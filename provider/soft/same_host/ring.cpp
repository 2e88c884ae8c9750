// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/same_host/ring.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "provider/common/file_limit.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kLine = RingMemory::kLine;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// Bytes that the reader may keep to itself; the writer sees the rest as free.
constexpr uint64_t kKept = kRingBytes / 8;

// A writer publishes its entries at the latest when they have that many bytes, so that long packets do not wait.
constexpr uint64_t kMaxUnpublished = 4 * kLine;

constexpr size_t bytes_before(uint8_t front) {
  return sizeof(RingEntry) + ((front & kAddresses) != 0 ? sizeof(Addresses) : 0) +
         ((front & kAcknowledgement) != 0 ? sizeof(roce::Acknowledgement) : 0);
}
constexpr uint8_t kLongestFront = kAddresses | kAcknowledgement;
static_assert(sizeof(roce::Acknowledgement) % sizeof(RingEntry) == 0);

// Of an entry and its packet.
constexpr size_t entry_bytes(size_t packet, uint8_t front) {
  return (bytes_before(front) + packet + sizeof(RingEntry) - 1) / sizeof(RingEntry) * sizeof(RingEntry);
}

constexpr uint16_t in_units(size_t bytes) {
  return static_cast<uint16_t>(bytes / sizeof(RingEntry));
}

// The most that fill_line() adds.
constexpr size_t kBehind = kLine;
// A packet, the unused end before it, and what is behind it.
constexpr size_t kMaxNeeded = 2 * entry_bytes(kLongestRingPacket, kLongestFront) + kBehind;
static_assert(kMaxNeeded + kKept <= kRingBytes);
static_assert(kMaxNeeded / sizeof(RingEntry) <= UINT16_MAX);
static_assert(sizeof(RingMemory::Control) <= RingMemory::kControlBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic_ref<uint64_t>::is_always_lock_free);

std::atomic_ref<uint64_t> entry_at(const RingMemory& memory, uint64_t position) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory.data() + position % kRingBytes));
}

uint64_t as_word(const RingEntry& entry) {
  return std::bit_cast<uint64_t>(entry);
}

RingEntry read_entry(const RingMemory& memory, uint64_t position) {
  return std::bit_cast<RingEntry>(entry_at(memory, position).load(std::memory_order_acquire));
}

static_assert(sizeof(RingPacket::headers) % sizeof(uint64_t) == 0 && sizeof(RingEntry) % sizeof(uint64_t) == 0);

// Headers are short: a call of memcpy() would take longer. An entry consists of whole words.
void copy_words(const std::byte* from, size_t size, std::byte* to) {
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) memcpy(to + at, from + at, sizeof(uint64_t));
}

}  // namespace

int RingMemory::create(OwnedFd& file) {
  if (!provider::file_may_have(kFileBytes)) return EFBIG;
  OwnedFd made(memfd_create("dapple-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return errno;
  // fallocate() reports a lack of memory; a first access would end in SIGBUS.
  if (fallocate(made.get(), 0, 0, kFileBytes) != 0 || fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) return errno;
  if (const int error = map_file(made.get()); error != 0) return error;
  file = std::move(made);
  return 0;
}

int RingMemory::map(int file) {
  // The seals come first: without them the peer could change the size after a look at it.
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return EINVAL;
  struct stat status = {};
  if (fstat(file, &status) != 0 || status.st_size != static_cast<off_t>(kFileBytes)) return EINVAL;
  // The kernel would fill a hole at the first access, and end the program if no memory is left.
  if (status.st_blocks * 512 < static_cast<blkcnt_t>(kFileBytes)) return EINVAL;
  return map_file(file);
}

int RingMemory::map_file(int file) {
  assert(!is_mapped());
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

void RingWriter::assert_consistent() const {
  // The reader has read no more than was written, and it still has at most the whole ring.
  assert(read_ <= written_ && written_ - read_ <= kRingBytes);
  assert(written_ % sizeof(RingEntry) == 0);
  assert(!has_unpublished_ || (first_place_ <= last_place_ && last_place_ < written_));
}

// The next entry may be written over that many bytes, and it may be abandoned then.
[[gnu::noinline]] void RingWriter::note_inner_lines(size_t bytes) {
  const size_t place = written_ % kRingBytes;
  for (size_t line = place / kLine + 1; line * kLine < place + bytes; line++) {
    assert(line < is_inner_.size());
    is_inner_[line] = true;
  }
}

std::byte* RingWriter::reserve(size_t size, const Addresses& addresses, EntryKind kind,
                               const roce::Acknowledgement* acknowledgement) {
  assert(size > 0 && size <= kLongestRingPacket);
  const auto front = static_cast<uint8_t>((same(addresses, addresses_) ? 0 : kAddresses) |
                                          (acknowledgement != nullptr ? kAcknowledgement : 0));
  const size_t bytes = entry_bytes(size, front);
  if (written_ + bytes > simple_end_ && !make_room(bytes)) [[unlikely]]
    return nullptr;
  // The next entry is within the ring, and behind everything that the reader still has.
  assert(written_ % kRingBytes + bytes <= kRingBytes && written_ + bytes + kBehind <= read_ + kRingBytes);
  if (written_ % kLine + bytes > kLine) note_inner_lines(bytes);
  reserved_ = as_word({static_cast<uint32_t>(size), kind, front, in_units(bytes)});
  reserved_addresses_ = &addresses;
  std::byte* entry = memory_.data() + written_ % kRingBytes;
  std::byte* packet = entry + bytes_before(front);
  if ((front & kAddresses) != 0) memcpy(entry + sizeof(RingEntry), &addresses, sizeof addresses);
  if (acknowledgement != nullptr) memcpy(packet - sizeof *acknowledgement, acknowledgement, sizeof *acknowledgement);
  return packet;
}

// For an entry of that many bytes, at the ring's start if there is too little room before its end.
[[gnu::noinline]] bool RingWriter::make_room(size_t bytes) {
  assert_consistent();
  const size_t rest = kRingBytes - written_ % kRingBytes;
  const size_t needed = (rest < bytes ? rest : 0) + bytes + kBehind;
  if (written_ + needed - read_ > kRingBytes && !has_become_free(needed)) return false;
  if (rest < bytes) append({sizeof(RingEntry), EntryKind::kWrap, 0, in_units(rest)});
  const uint64_t end_of_lap = written_ - written_ % kRingBytes + kRingBytes;
  simple_end_ = std::min(end_of_lap, read_ + kRingBytes - kBehind);
  return true;
}

bool RingWriter::has_become_free(size_t needed) {
  const uint64_t read = memory_.control().read.load(std::memory_order_acquire);
  // No reader of ours goes back, or ahead of the writer.
  if (read < read_ || read > written_) return false;
  read_ = read;
  return written_ + needed - read_ <= kRingBytes;
}

void RingWriter::append(const RingEntry& entry) {
  assert(entry.size > 0 && entry.space > 0);
  if (has_unpublished_) {
    store_last();
  } else {
    first_place_ = written_;
  }
  has_unpublished_ = true;
  last_ = entry;
  last_place_ = written_;
  written_ += entry.space * sizeof(RingEntry);
}

void RingWriter::store_last() {
  if (last_place_ == first_place_) {
    first_ = last_;
  } else {
    entry_at(memory_, last_place_).store(as_word(last_), std::memory_order_relaxed);
  }
}

// The entry of the last reserve(), whose packet is complete now.
inline RingEntry RingWriter::take_reserved() {
  assert(reserved_ != 0);
  const auto entry = std::bit_cast<RingEntry>(reserved_);
  if ((entry.front & kAddresses) != 0) addresses_ = *reserved_addresses_;
  reserved_ = 0;
  return entry;
}

void RingWriter::commit() {
  append(take_reserved());
  if (written_ - first_place_ >= kMaxUnpublished) publish();
}

// The entry that ends at written_ gets the rest of its line.
inline void RingWriter::fill_line(RingEntry& last) {
  const uint64_t gap = (kLine - written_ % kLine) % kLine;
  last.space = static_cast<uint16_t>(last.space + in_units(gap));
  written_ += gap;
}

// Publishes the entries from `place` on, of which `first` is the first.
inline void RingWriter::show(uint64_t place, const RingEntry& first) {
  bool& is_inner = is_inner_[written_ % kRingBytes / kLine];
  if (is_inner) entry_at(memory_, written_).store(0, std::memory_order_relaxed);
  is_inner = false;
  entry_at(memory_, place).store(as_word(first), std::memory_order_release);
}

void RingWriter::publish() {
  if (!has_unpublished_) return;
  assert_consistent();
  fill_line(last_);
  store_last();
  has_unpublished_ = false;
  show(first_place_, first_);
}

void RingWriter::publish_one() {
  if (has_unpublished_) {
    // The unused end of the ring comes before the packet.
    commit();
    return publish();
  }
  const uint64_t place = written_;
  RingEntry entry = take_reserved();
  written_ += entry.space * sizeof(RingEntry);
  fill_line(entry);
  show(place, entry);
  assert_consistent();
}

bool RingWriter::must_wake() {
  std::atomic<uint32_t>& sleeping = memory_.control().sleeping;
  return sleeping.load(std::memory_order_relaxed) != 0 && sleeping.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingWriter::wait_for_room() {
  memory_.control().waiting.store(1, std::memory_order_relaxed);
  // RingReader::release() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // The look decides only about waiting. The load before the next write is the one that acquires.
  return written_ - memory_.control().read.load(std::memory_order_relaxed) > kRingBytes - kMaxNeeded;
}

RingReader::Next RingReader::next(RingPacket& packet) {
  return look<true>(read_, addresses_, packet);
}

RingReader::Next RingReader::peek(RingPacket& packet) {
  uint64_t position = read_;
  return look<false>(position, peeked_addresses_, packet);
}

// Moves `position` behind the packet that it finds there. `new_addresses` become the packet's if its entry has some.
template <bool kTake>
[[gnu::always_inline]] inline RingReader::Next RingReader::look(uint64_t& position, Addresses& new_addresses,
                                                                RingPacket& packet) const {
  for (int wraps = 0; wraps < 2; wraps++) {
    const size_t place = position % kRingBytes;
    const RingEntry entry = read_entry(memory_, position);
    if (entry.size == 0) return Next::kNothing;
    if (kTake && place % kLine == 0) entry_at(memory_, position).store(0, std::memory_order_relaxed);
    packet.kind = entry.kind;
    if (entry.kind == EntryKind::kWrap) {
      position += kRingBytes - place;
      continue;
    }
    const size_t space = entry.space * sizeof(RingEntry);
    if (entry.size > kLongestRingPacket || entry_bytes(entry.size, entry.front) > space || place + space > kRingBytes)
      return Next::kBroken;
    const std::byte* at = memory_.data() + place;
    packet.addresses = &addresses_;
    if ((entry.front & kAddresses) != 0) [[unlikely]] {
      memcpy(&new_addresses, at + sizeof(RingEntry), sizeof new_addresses);
      packet.addresses = &new_addresses;
    }
    packet.bytes = {at + bytes_before(entry.front), entry.size};
    packet.has_acknowledgement = (entry.front & kAcknowledgement) != 0;
    if (packet.has_acknowledgement)
      memcpy(&packet.acknowledgement, packet.bytes.data() - sizeof packet.acknowledgement,
             sizeof packet.acknowledgement);
    packet.headers_size = std::min<size_t>(entry.size, sizeof packet.headers);
    copy_words(packet.bytes.data(), packet.headers_size, packet.headers);
    position += space;
    assert(position % sizeof(RingEntry) == 0);
    return Next::kPacket;
  }
  return Next::kBroken;
}

void RingReader::assert_consistent() const {
  assert(released_ <= read_ && read_ - released_ <= kRingBytes);
  assert(read_ % sizeof(RingEntry) == 0);
}

bool RingReader::release() {
  assert_consistent();
  if (read_ - released_ < kKept) return false;
  memory_.control().read.store(read_, std::memory_order_release);
  released_ = read_;
  // RingWriter::wait_for_room() has the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint32_t>& waiting = memory_.control().waiting;
  return waiting.load(std::memory_order_relaxed) != 0 && waiting.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingReader::empty() const {
  return read_entry(memory_, read_).size == 0;
}

void RingReader::sleep() {
  memory_.control().sleeping.store(1, std::memory_order_relaxed);
  // The fence before RingWriter::must_wake() is the counterpart.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace dapple::soft
