// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/process/descriptors.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cassert>
#include <new>

#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace detail {
constinit std::atomic<uint16_t> record_of[kMaxDescriptor] = {};
}

namespace {

constexpr unsigned kMaxRecords = 8192;
static_assert(kMaxRecords <= UINT16_MAX);
constexpr uint32_t kFilling = UINT32_MAX;

struct Inode {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Inode&) const = default;
};

// One open file, which several descriptors may share.
struct Record {
  std::atomic<uint32_t> users;  // kFilling: a thread writes the rest
  Door door;
  Inode inode;
};

// Record 0 is not used.
constinit Record records[kMaxRecords] = {};
constinit std::atomic<unsigned> highest = 0;      // the highest descriptor ever tracked
constinit std::atomic<unsigned> records_end = 1;  // beyond the last one ever used
constinit std::atomic<pid_t> owner = 0;           // 0: nothing has been tracked yet
// Points to true, in memory that the kernel clears in each child that gets a copy. Null if the kernel cannot do that.
constinit std::atomic<std::atomic<bool>*> own_memory = nullptr;

// False if the descriptor is not open. A hidden one may be a file of the program's, whose server (FUSE, NFS) may never
// answer. So the kernel alone is asked then, unless a filter of system calls forbids it.
bool read_inode(int fd, Kind kind, Inode& inode) {
  struct statx known;
  if (kind == Kind::kHidden && syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &known) == 0) {
    inode = {makedev(known.stx_dev_major, known.stx_dev_minor), known.stx_ino};
    return true;
  }
  // The C library's fstat() may be a look-up of an empty path, which costs the kernel a multiple.
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0) return false;
  inode = {status.st_dev, status.st_ino};
  return true;
}

bool same_file(int fd, const Record& record) {
  const int saved = errno;
  Inode inode;
  const bool same = read_inode(fd, record.door.kind, inode) && inode == record.inode;
  errno = saved;
  return same;
}

void release(unsigned number) {
  assert(0 < number && number < kMaxRecords);
  Record& record = records[number];
  const int attached[] = {record.door.attached[0], record.door.attached[1]};
  soft::CmFront* front = record.door.front;
  const uint32_t users = record.users.fetch_sub(1, std::memory_order_acq_rel);
  assert(users != 0 && users != kFilling);
  if (users != 1) return;
  for (const int fd : attached) {
    if (fd >= 0) close_hidden(fd);
  }
  if (front != nullptr) munmap(front, kFrontSize);
}

// False if the record is unused.
bool acquire(Record& record) {
  uint32_t users = record.users.load(std::memory_order_relaxed);
  while (users != 0 && users != kFilling) {
    if (record.users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// The record of a descriptor, or 0. Stale records are removed.
unsigned valid_record(int fd) {
  if (!maybe_ours(fd)) return 0;
  uint16_t number = detail::record_of[fd].load(std::memory_order_acquire);
  assert(number < kMaxRecords);
  if (number == 0 || same_file(fd, records[number])) return number;
  if (owns_table() && detail::record_of[fd].compare_exchange_strong(number, 0)) release(number);
  return 0;
}

void raise(std::atomic<unsigned>& number, unsigned to) {
  unsigned seen = number.load();
  while (seen < to && !number.compare_exchange_weak(seen, to)) {
  }
}

void own_memory_in_child() {
  owner.store(getpid(), std::memory_order_release);
  if (std::atomic<bool>* own = own_memory.load()) own->store(true);
}

void mark_own_memory() {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return;
  }
  auto* own = new (page) std::atomic<bool>(true);
  own_memory.store(own, std::memory_order_release);
}

// At the start, because a child of vfork() could not know later that it shares this memory.
[[gnu::constructor(102)]] void own_table() {
  if (owner.load(std::memory_order_acquire) != 0) return;
  pid_t none = 0;
  if (owner.compare_exchange_strong(none, getpid())) {
    mark_own_memory();
    pthread_atfork(nullptr, nullptr, own_memory_in_child);
  }
}

}  // namespace

pid_t table_owner() {
  return owner.load(std::memory_order_acquire);
}

bool owns_table() {
  return owner.load(std::memory_order_acquire) == getpid();
}

bool has_own_memory() {
  const std::atomic<bool>* own = own_memory.load(std::memory_order_acquire);
  return own != nullptr ? own->load(std::memory_order_relaxed) : owns_table();
}

bool find_unchecked(int fd, Door& door) {
  if (!maybe_ours(fd)) return false;
  const uint16_t number = detail::record_of[fd].load(std::memory_order_acquire);
  if (number != 0) door = records[number].door;
  return number != 0;
}

HeldDoor::HeldDoor(int fd) {
  if (!maybe_ours(fd)) return;
  const uint16_t number = detail::record_of[fd].load(std::memory_order_acquire);
  if (number == 0 || !acquire(records[number])) return;
  number_ = number;
  assert(number < kMaxRecords && records[number].users.load(std::memory_order_relaxed) != 0);
  // Meanwhile another thread may have closed the descriptor and used the record again.
  if (detail::record_of[fd].load(std::memory_order_acquire) == number) return;
  number_ = 0;
  release(number);
}

HeldDoor::~HeldDoor() {
  if (number_ != 0) release(number_);
}

const Door* HeldDoor::get() const {
  return number_ == 0 ? nullptr : &records[number_].door;
}

bool find(int fd, Door& door) {
  const unsigned number = valid_record(fd);
  if (number == 0) return false;
  door = records[number].door;
  return true;
}

bool find(int fd, Kind kind, Door& door) {
  if (!maybe_ours(fd)) return false;
  const uint16_t number = detail::record_of[fd].load(std::memory_order_acquire);
  return records[number].door.kind == kind && find(fd, door) && door.kind == kind;
}

bool track(int fd, const Door& door) {
  own_table();
  Inode inode;
  if (fd < kMaxDescriptor && read_inode(fd, door.kind, inode)) {
    for (unsigned i = 1; i < kMaxRecords; ++i) {
      uint32_t unused = 0;
      if (records[i].users.load(std::memory_order_relaxed) != 0) continue;
      if (!records[i].users.compare_exchange_strong(unused, kFilling, std::memory_order_acq_rel)) continue;
      // Only a channel of rdma_cm has memory, and only hidden descriptors go with a door.
      assert((door.front == nullptr || door.kind == Kind::kRdmaCm) &&
             (door.kind != Kind::kHidden || door.attached[0] < 0));
      records[i].door = door;
      records[i].inode = inode;
      records[i].users.store(1, std::memory_order_release);
      raise(records_end, i + 1);
      assert(records_end.load() > i && records_end.load() <= kMaxRecords);
      const unsigned before = detail::record_of[fd].exchange(static_cast<uint16_t>(i), std::memory_order_acq_rel);
      if (before != 0) release(before);
      raise(highest, static_cast<unsigned>(fd));
      return true;
    }
  }
  errno = EMFILE;
  return false;
}

void copied(int from, int to) {
  if (to < 0 || to >= kMaxDescriptor || from == to) return;
  if (!maybe_ours(from) && !maybe_ours(to)) return;
  if (!owns_table()) return;
  const unsigned number = valid_record(from);
  if (number != 0) {
    [[maybe_unused]] const uint32_t users = records[number].users.fetch_add(1, std::memory_order_acq_rel);
    assert(users != kFilling);
  }
  const unsigned before = detail::record_of[to].exchange(static_cast<uint16_t>(number), std::memory_order_acq_rel);
  if (before != 0) release(before);
  if (number != 0) raise(highest, static_cast<unsigned>(to));
}

void forget(int fd) {
  if (!maybe_ours(fd) || !owns_table()) return;
  const unsigned number = detail::record_of[fd].exchange(0, std::memory_order_acq_rel);
  if (number != 0) release(number);
}

void visit(Kind kind, bool (*visit)(const Door& door, void* argument), void* argument) {
  const unsigned end = records_end.load(std::memory_order_acquire);
  bool more = true;
  for (unsigned i = 1; i < end && more; ++i) {
    if (!acquire(records[i])) continue;
    if (records[i].door.kind == kind) more = visit(records[i].door, argument);
    release(i);
  }
}

int close_pieces(unsigned first, unsigned last, int (*close_some)(unsigned from, unsigned to)) {
  const unsigned end = highest.load();
  unsigned begin = first;
  assert(first <= last && end < kMaxDescriptor);
  for (unsigned fd = first; fd <= end && fd <= last; ++fd) {
    Door door;
    if (!find(static_cast<int>(fd), door)) continue;
    if (door.kind != Kind::kHidden) {
      forget(static_cast<int>(fd));
      continue;
    }
    if (begin < fd && close_some(begin, fd - 1) != 0) return -1;
    begin = fd + 1;
  }
  return begin > last ? 0 : close_some(begin, last);
}

int hide(int fd) {
  // Moves the descriptor to the upper quarter of the numbers. The kernel gives programs the lowest free number, and
  // programs that choose a number choose a small one.
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t most = limit.rlim_cur < kMaxDescriptor ? limit.rlim_cur : kMaxDescriptor;
  int moved = real.fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(most - most / 4));
  if (moved >= 0 && moved < kMaxDescriptor) {
    // Not by `real`: a sanitizer in the program has seen how the number was opened, so it has to see the close.
    close(fd);
  } else {
    if (moved >= 0) real.close(moved);
    moved = fd;
  }
  track(moved, {.kind = Kind::kHidden});
  return moved;
}

// The program's close() refuses a hidden descriptor, and a sanitizer there has never seen the number. Any other has to
// be closed as it was opened, or the sanitizer takes the next file of this number for that of another thread.
void close_hidden(int fd) {
  Door door;
  if (!find(fd, Kind::kHidden, door)) {
    close(fd);
    return;
  }
  forget(fd);
  real.close(fd);
}

}  // namespace dapple::doors
