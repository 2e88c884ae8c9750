// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of a peer's process, as the peer has published it. This process checks what the peer's engine would check.
// Then it copies many bytes by the peer's process number, if the system allows that, and others by the descriptor of
// /proc/PID/mem that it has opened: the kernel then reads and writes nothing after the peer's end or exec().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/soft/placement/guarded_process.hpp"
#include "provider/soft/placement/table.hpp"
#include "provider/soft/proof/challenges.hpp"
#include "provider/soft/same_host/announcements.hpp"
#include "provider/system/owned_fd.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// Any thread may copy.
class PeerMemory {
 public:
  PeerMemory() = default;
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Opens the peer's memory, if the kernel allows it, and answers the peer's challenge. `process`: the peer's number in
  // this process' PID namespace, or 0. `hidden`: the secrets of peers are in pages that other programs lack. Once.
  Right prove(ProofWords& words, const Parties& parties, pid_t process, bool hidden);
  // After a proof: takes the table that the peer has sent for it. `announcements`: the peer has mapped them, too.
  // `process` as above; with 0, the descriptor serves all copies. One thread.
  void open(OwnedFd table, Announcement* announcements, uint32_t own_slot, pid_t process);
  // From now on it is not usable. Copies that have begun end as usual.
  void stop() { usable_.store(false, std::memory_order_relaxed); }
  // False before open(), after stop(), and after the peer's end.
  bool usable() const { return usable_.load(std::memory_order_acquire); }
  // Tells whether the kernel copies that many bytes once only, and not twice. While it is usable.
  bool copies_once(uint64_t size) const { return size >= GuardedProcess::kMin && process_.usable(); }

  // The bytes that one grant should serve: a peer that takes memory back waits no longer than for the copy of them,
  // some dozens of microseconds. The kernel looks at the guard page for each copy that it makes once, so those are
  // longer.
  uint64_t most_at_once(uint64_t size) const { return copies_once(size) ? 1024 * 1024 : 64 * 1024; }
  // While there is a grant for each piece. False if not all was copied, as always unless the kernel copies once.
  bool read_together(std::span<const GuardedProcess::Piece> pieces) { return process_.read(pieces); }
  // The number that distinguishes the peer's table from all others. After open(), if it is usable.
  uint64_t nonce() const { return nonce_; }

  // The right to copy within a range, while one exists. The peer waits for its end if it takes the range back.
  class Grant {
   public:
    // `wanted`: the peer's queue pair as it must be, with the right that is needed.
    Grant(PeerMemory& peer, const QpDescription& wanted, const roce::RemoteRange& range);
    ~Grant();
    Grant(const Grant&) = delete;
    Grant& operator=(const Grant&) = delete;

    // False: nothing may be copied, and packets would get the peer's answer.
    explicit operator bool() const { return word_ != nullptr; }
    // False if the peer's memory cannot be reached, or the peer has ended. Some bytes may have been copied. `size` is
    // not 0.
    bool write(uint64_t address, const std::byte* from, size_t size);
    bool read(uint64_t address, std::byte* to, size_t size);
    // After a read: the peer's queue pair has been in order all the time.
    bool queue_pair_lives() const;

   private:
    PeerMemory& peer_;
    Announcement* word_ = nullptr;
    uint32_t qp_ticket_ = 0;
    uint32_t qpn_ = 0;
  };

  void close_in_child() { memory_.reset(); }

 private:
  bool reaches(uint32_t own_slot, uint64_t expected) const;
  Announcement* claim();
  void release(const Announcement* word);
  bool allows(const QpDescription& wanted, const roce::RemoteRange& range, uint32_t key_ticket,
              uint32_t qp_ticket) const;
  bool copied(int64_t result, size_t size);

  std::atomic<bool> usable_{false};
  OwnedFd memory_;
  GuardedProcess process_;
  uint64_t nonce_ = 0;
  const PublishedTable* table_ = nullptr;
  Announcement* announcements_ = nullptr;
  std::atomic<uint32_t> claimed_{0};  // a bit for each of the announcements
};

}  // namespace dapple::soft
