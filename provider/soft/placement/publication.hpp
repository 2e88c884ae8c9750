// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process' memory as peers reach it without its help: the peers, their proofs that the kernel lets them reach it,
// the guard page, and the table of the keys and queue pairs that they may use. Packets serve everything that is not
// published.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/soft/placement/guard_page.hpp"
#include "provider/soft/placement/placers.hpp"
#include "provider/soft/placement/table.hpp"
#include "provider/soft/proof/challenges.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Internally locked, except for the proofs of placers: those are one thread's at a time.
class Publication {
 public:
  Publication() = default;
  ~Publication();
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  // Call it before all other functions. Without it, or if it returns false, nothing is published.
  bool open();

  // These functions return a ticket, or 0 if nothing was published.
  uint32_t publish(const KeyDescription& key);
  uint32_t publish(const QpDescription& qp);
  // From now on no peer begins to use the queue pair. Does not wait. A ticket of 0 is fine here and below.
  void withdraw_qp(uint32_t ticket);
  // The same, and waits until no peer uses it any more, for 10 ms at most: a peer that is stopped in the middle of a
  // copy must not stop this process. False if one still uses it. The caller may hold a queue pair's lock: copies end
  // without this process' help, and no peer is this process itself.
  bool stop_qp(uint32_t ticket);
  // As withdraw_qp(), and no peer uses the entry any more when they return: await_end_of() of the placers.
  void revoke_key(uint32_t ticket);
  void revoke_qp(uint32_t ticket);

  // The number that distinguishes this process' table from all others; 0 without a table. Peers find the number in the
  // table, too.
  uint64_t nonce() const { return table_ != nullptr ? nonce_ : 0; }
  // Tells whether peers find the key, for this range in this domain.
  bool shows(uint32_t key, uint32_t domain, uint64_t address, uint64_t length) const;

  // Asks a process to prove that it reaches this memory by its own right; the caller wakes it. False if this is not
  // possible now. If it returns true, the caller must call forget() before it lets the placer go.
  bool ask(Placer& placer, const Parties& parties);
  // After ask(): kAsked until the placer has answered. After kGranted the placer has the table and may copy. Otherwise
  // the reason, in part as the placer reports it.
  Right judge(Placer& placer);
  // The placer copies no more.
  void forget(Placer& placer);
  // Tells whether the secrets of such processes are in pages that may_have() accepts. If not, the machine has no such
  // pages.
  bool hides_secrets() const { return challenges_.are_hidden(); }
  Placers& placers() { return placers_; }

  void close_in_child();

 private:
  template <typename Entries, typename Description>
  uint32_t publish_in(Entries& entries, bool (&taken)[Entries::kCount], uint32_t number, const Description& description,
                      uint32_t places);

  // All of the table has memory then. False if there is none. Under the lock.
  bool take_memory();
  bool pass_table(const Placer& placer) const;

  PublishedTable* table_ = nullptr;
  OwnedFd table_file_;
  GuardPage guard_page_;
  uint64_t nonce_ = 0;
  uint64_t echoes_[kMaxSlots] = {};
  Placers placers_;
  Challenges challenges_;

  Mutex mutex_{LockRank::kPublication};
  std::atomic<bool> has_memory_{false};  // set under the lock
  // Places that are alive, or dead and not yet let go by all peers.
  bool keys_taken_[decltype(PublishedTable::keys)::kCount] = {};
  bool qps_taken_[decltype(PublishedTable::qps)::kCount] = {};
};

}  // namespace dapple::soft
