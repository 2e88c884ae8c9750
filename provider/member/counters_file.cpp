// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/counters_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace dapple::soft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr uint32_t kRowsAtOnce = 256;

}  // namespace

OwnedFd make_counters_file() {
  OwnedFd file(memfd_create("dapple-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return file;
  if (ftruncate(file.get(), kCountersFileSize) != 0 || fcntl(file.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    file.reset();
  }
  return file;
}

bool is_counters_file(int fd) {
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && (seals & F_SEAL_WRITE) == 0 && fstat(fd, &status) == 0 &&
         status.st_size == kCountersFileSize;
}

SlotPages* map_counters(int fd, uint32_t slot) {
  if (slot >= kMaxSlots || !is_counters_file(fd)) return nullptr;
  const size_t place = slot * kSlotPagesSize;
  const size_t within = place % static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, within + kSlotPagesSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      static_cast<off_t>(place - within));
  return memory == MAP_FAILED ? nullptr : reinterpret_cast<SlotPages*>(static_cast<char*>(memory) + within);
}

void* map_races(int fd, uint32_t slot) {
  if (slot >= kMaxSlots || !is_counters_file(fd)) return nullptr;
  const auto place = static_cast<off_t>(kAllSlotPagesSize + slot * kSlotRacesSize);
  // Otherwise an access could end in SIGBUS.
  if (fallocate(fd, 0, place, kSlotRacesSize) != 0) return nullptr;
  // Pages have up to 64 KiB.
  static_assert(kAllSlotPagesSize % 65536 == 0 && kSlotRacesSize % 65536 == 0);
  void* memory = mmap(nullptr, kSlotRacesSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, place);
  return memory == MAP_FAILED ? nullptr : memory;
}

ResourceRowMemory::ResourceRowMemory(int file, uint32_t slot)
    : file_(file),
      rows_(static_cast<off_t>(slot * kSlotPagesSize + kSlotResourceRows)),
      ready_((kSlotFirstSize - kSlotResourceRows) / sizeof(SharedResourceRow)) {}

bool ResourceRowMemory::take(uint32_t row) {
  assert(row < kMaxResourceRows);
  const uint32_t wanted = std::min(row + kRowsAtOnce, kMaxResourceRows);
  uint32_t ready = ready_.load(std::memory_order_relaxed);
  while (fallocate(file_, 0, rows_, static_cast<off_t>(wanted * sizeof(SharedResourceRow))) != 0) {
    if (errno != EINTR) return false;
  }
  // Another thread may have taken more.
  while (ready < wanted && !ready_.compare_exchange_weak(ready, wanted, std::memory_order_relaxed)) continue;
  return true;
}

CountersSum::~CountersSum() {
  for (char* block : blocks_) {
    if (block != nullptr) munmap(block, kBlockSize);
  }
}

int CountersSum::cover(int fd, uint32_t slots) {
  if (slots <= covered_) return 0;
  static_assert(kBlocks * kBlockSize == kAllSlotPagesSize);
  assert(slots <= kMaxSlots);
  for (uint32_t slot = covered_; slot < slots; slot++) {
    if (fallocate(fd, 0, static_cast<off_t>(slot * kSlotPagesSize), kSlotFirstSize) != 0) return errno;
  }
  for (uint32_t i = 0; i * kSlotsOfABlock < slots; i++) {
    if (blocks_[i] != nullptr) continue;
    void* memory =
        mmap(nullptr, kBlockSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(i * kBlockSize));
    if (memory == MAP_FAILED) return errno;
    blocks_[i] = static_cast<char*>(memory);
  }
  covered_ = slots;
  return 0;
}

SlotPages* CountersSum::at(uint32_t slot) const {
  if (slot >= covered_) return nullptr;
  assert(blocks_[slot / kSlotsOfABlock] != nullptr);
  return reinterpret_cast<SlotPages*>(blocks_[slot / kSlotsOfABlock] + slot % kSlotsOfABlock * kSlotPagesSize);
}

void CountersSum::add_to(uint64_t (&sums)[kCounterCount]) const {
  for (uint32_t slot = 0; slot < covered_; slot++) {
    const auto counters = all_of(at(slot)->counters);
    for (size_t i = 0; i < kCounterCount; i++) sums[i] += counters[i].value();
    // A process counts these for each of its devices.
    const SlotDevices& devices = at(slot)->devices;
    sums[kSameHostSentPackets] += devices.others.same_host_sent_packets.value();
    for (const DeviceRow& row : devices.rows) sums[kSameHostSentPackets] += row.traffic.same_host_sent_packets.value();
  }
}

}  // namespace dapple::soft
