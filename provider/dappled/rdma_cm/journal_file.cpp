// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/journal_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "provider/dappled/rdma_cm/ids/id_table.hpp"
#include "provider/dappled/rdma_cm/journal.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr size_t kHeaderRoom = 64;
static_assert(sizeof(soft::CmFront) <= kHeaderRoom);
constexpr size_t kSmallest = 4096;

// A process that is killed has executed its instructions in order up to some point, so only the compiler's order
// matters.
void before_all_later() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

// An entry in two halves, of which the older one is overwritten. The half with the higher number is valid; 0: the half
// is incomplete.
struct JournalFile::Record {
  struct Half {
    std::atomic<uint64_t> number;
    std::byte entry[kJournalEntrySize];
  };
  Half halves[2];

  Half& newer() { return halves[halves[0].number.load() >= halves[1].number.load() ? 0 : 1]; }
  Half& older() { return &newer() == halves ? halves[1] : halves[0]; }
};

JournalFile::~JournalFile() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

JournalFile::Record& JournalFile::record(uint32_t index) const {
  assert(bytes_ != nullptr && index < room_);
  return reinterpret_cast<Record*>(bytes_ + kHeaderRoom)[index];
}

int JournalFile::map(size_t size) {
  assert(size > size_ && size >= kSmallest);
  void* bytes = bytes_ == nullptr ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0)
                                  : mremap(bytes_, size_, size, MREMAP_MAYMOVE);
  if (bytes == MAP_FAILED) return errno;
  bytes_ = static_cast<std::byte*>(bytes);
  size_ = size;
  room_ = static_cast<uint32_t>(std::min<size_t>((size - kHeaderRoom) / sizeof(Record), IdTable::kMax));
  return 0;
}

int JournalFile::create(const soft::CmChannelName& name) {
  file_.reset(memfd_create("dapple-rdma-cm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_ || fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) return errno;
  // Allocates the pages now. A lack of memory at a later access would end this process by SIGBUS.
  if (fallocate(file_.get(), 0, 0, kSmallest) != 0) return errno;
  if (const int error = map(kSmallest); error != 0) return error;
  front().mark = kJournalMark;
  front().name = name;
  return 0;
}

int JournalFile::open(soft::OwnedFd file, soft::CmChannelName& name) {
  // A file of another kind could keep this thread waiting, or lose its pages.
  const int seals = fcntl(file.get(), F_GET_SEALS);
  struct stat status;
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file.get(), &status) != 0) return EINVAL;
  const auto size = static_cast<size_t>(status.st_size);
  if (size < kSmallest || size > kHeaderRoom + (size_t{IdTable::kMax} + 1) * 2 * sizeof(Record)) return EINVAL;
  if (fallocate(file.get(), 0, 0, status.st_size) != 0) return errno;
  file_ = std::move(file);
  if (const int error = map(size); error != 0) return error;
  name = front().name;
  return front().mark == kJournalMark ? 0 : EINVAL;
}

bool JournalFile::make_room(uint32_t count) {
  if (count <= room_) return true;
  if (count > IdTable::kMax) return false;
  size_t size = size_;
  while ((size - kHeaderRoom) / sizeof(Record) < count) size *= 2;
  if (fallocate(file_.get(), 0, 0, static_cast<off_t>(size)) != 0) return false;
  return map(size) == 0;
}

void JournalFile::write(uint32_t index, std::span<const std::byte> entry) {
  assert(entry.size() == kJournalEntrySize);
  if (!make_room(index + 1)) return;
  Record& at = record(index);
  const uint64_t number = at.newer().number.load() + 1;
  Record::Half& half = at.older();
  half.number.store(0);
  before_all_later();
  memcpy(half.entry, entry.data(), std::min(entry.size(), sizeof half.entry));
  before_all_later();
  half.number.store(number);
  assert(&at.newer() == &half);
}

bool JournalFile::read(uint32_t index, std::span<std::byte> entry) const {
  assert(entry.size() == kJournalEntrySize);
  if (index >= room_) return false;
  Record::Half& half = record(index).newer();
  if (half.number.load() == 0) return false;
  memcpy(entry.data(), half.entry, std::min(entry.size(), sizeof half.entry));
  return true;
}

void JournalFile::cut(uint32_t index) {
  for (; index < room_; index++) {
    record(index).older().number.store(0);
    record(index).newer().number.store(0);
  }
}

}  // namespace dapple::dappled::rdma_cm
