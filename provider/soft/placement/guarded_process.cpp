// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/guarded_process.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cassert>

#include "provider/soft/memory/ordered_copy.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

// The parts of memory on one side of a copy: a word of the guard page, and the bytes.
class Parts {
 public:
  explicit Parts(uint64_t word) : parts_{part(word, kWord)} {}
  void add(uint64_t bytes, size_t size) {
    assert(count_ < 1 + GuardedProcess::kMaxPieces && size > 0);
    parts_[count_++] = part(bytes, size);
  }
  void split_off(size_t last) {
    iovec& whole = parts_[count_ - 1];
    assert(last <= whole.iov_len);
    whole.iov_len -= last;
    add(reinterpret_cast<uint64_t>(whole.iov_base) + whole.iov_len, last);
  }
  const iovec* begin() const { return parts_; }
  size_t count() const { return count_; }

 private:
  static iovec part(uint64_t address, size_t size) {
    return {reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  }

  iovec parts_[1 + GuardedProcess::kMaxPieces];
  size_t count_ = 1;
};

// Not the C library's functions: those are cancellation points.
int64_t write_to(pid_t process, const Parts& from, const Parts& to) {
  return syscall(SYS_process_vm_writev, process, from.begin(), from.count(), to.begin(), to.count(), 0ul);
}

int64_t read_from(pid_t process, const Parts& to, const Parts& from) {
  return syscall(SYS_process_vm_readv, process, to.begin(), to.count(), from.begin(), from.count(), 0ul);
}

uint64_t address_of(const void* bytes) {
  return reinterpret_cast<uint64_t>(bytes);
}

// A part of the caller's memory costs less than one of the other process' memory, whose pages the kernel takes anew for
// each part. Between two parts of the caller's memory the kernel does nothing that would order the stores. x86 keeps
// the order of stores, also from one string instruction to the next. Other machines need what the kernel does between
// two parts of the other process' memory.
void make_last_word_visible_last([[maybe_unused]] Parts& here, [[maybe_unused]] Parts& there, size_t last) {
#ifdef __x86_64__
  here.split_off(last);
#else
  there.split_off(last);
#endif
}

}  // namespace

// Permissions, namespaces and security modules all may be in the way, so this tries it.
void GuardedProcess::open(pid_t process, Guard guard) {
  if (!RandomPage::may_have(guard.address) || process <= 0) return;
  assert(!usable());
  guard_ = guard;
  process_.store(process, std::memory_order_relaxed);
  std::byte word[kWord] = {};
  const uint64_t for_peers = guard.address + kWord;
  const Piece own_word = {for_peers, word, kWord};
  const bool reached = read({&own_word, 1}) && write(for_peers, word, kWord);
  if (!reached) process_.store(0, std::memory_order_relaxed);
}

bool GuardedProcess::write(uint64_t address, const std::byte* from, size_t size) {
  const pid_t process = process_.load(std::memory_order_relaxed);
  if (process == 0) return false;
  const uint64_t word = 0;
  Parts sources(address_of(&word)), targets(guard_.address + kWord);
  sources.add(address_of(from), size);
  targets.add(address, size);
  make_last_word_visible_last(sources, targets, size_of_last_word(address, size));
  const int64_t copied = write_to(process, sources, targets);
  if (copied < static_cast<int64_t>(kWord)) process_.store(0, std::memory_order_relaxed);
  return copied == static_cast<int64_t>(kWord + size);
}

bool GuardedProcess::read(std::span<const Piece> pieces) {
  const pid_t process = process_.load(std::memory_order_relaxed);
  if (process == 0) return false;
  assert(0 < pieces.size() && pieces.size() <= kMaxPieces);
  uint64_t nonce = 0;
  Parts targets(address_of(&nonce)), sources(guard_.address);
  size_t size = 0;
  for (const Piece& piece : pieces) {
    targets.add(address_of(piece.to), piece.size);
    sources.add(piece.address, piece.size);
    size += piece.size;
  }
  const int64_t copied = read_from(process, targets, sources);
  const bool proved = copied >= static_cast<int64_t>(kWord) && nonce == guard_.nonce;
  if (!proved) process_.store(0, std::memory_order_relaxed);
  return proved && copied == static_cast<int64_t>(kWord + size);
}

}  // namespace dapple::soft
