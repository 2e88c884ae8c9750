// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/publication.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

#include "provider/common/file_limit.hpp"
#include "provider/protocol/unix_message.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {
namespace {

// Many times the length of a copy that one grant serves.
constexpr uint64_t kMaxWaitNs = 10'000'000;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

}  // namespace

Publication::~Publication() {
  if (table_ != nullptr) munmap(table_, sizeof *table_);
}

bool Publication::open() {
  assert(table_ == nullptr);
  OwnedFd file(memfd_create("dapple-placement", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_ || !challenges_.open()) return false;
  if (!provider::file_may_have(sizeof *table_) || ftruncate(file.get(), sizeof *table_) != 0) return false;
  // fallocate() reports a lack of memory; a first access would end in SIGBUS. take_memory() takes the rest, which a
  // program without queue pairs and regions does not need.
  if (fallocate(file.get(), 0, 0, offsetof(PublishedTable, keys)) != 0) return false;
  void* mapped = mmap(nullptr, sizeof *table_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  table_ = static_cast<PublishedTable*>(mapped);
  madvise(mapped, sizeof *table_, MADV_DONTFORK);
  // The mapping above stays writable; peers can make no such mapping.
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    munmap(mapped, sizeof *table_);
    table_ = nullptr;
    return false;
  }
  table_->nonce = nonce_;
  table_->nonce_address = reinterpret_cast<uintptr_t>(&nonce_);
  table_->echoes_address = reinterpret_cast<uintptr_t>(echoes_);
  // Without a guard page, peers copy by the descriptor only.
  if (guard_page_.map()) table_->guard = guard_page_.guard();
  table_file_ = std::move(file);
  table_file_.hide();
  return true;
}

bool Publication::take_memory() {
  assert_held(mutex_);
  if (has_memory_.load(std::memory_order_relaxed)) return true;
  if (fallocate(table_file_.get(), 0, 0, sizeof *table_) != 0) return false;
  has_memory_.store(true, std::memory_order_relaxed);
  return true;
}

template <typename Entries, typename Description>
uint32_t Publication::publish_in(Entries& entries, bool (&taken)[Entries::kCount], uint32_t number,
                                 const Description& description, uint32_t places) {
  assert(number != 0 && places <= Entries::kPlaces);
  const std::lock_guard lock(mutex_);
  if (!take_memory()) return 0;
  const uint32_t first = Entries::first_of(number);
  for (uint32_t place = first; place < first + places; place++) {
    if (taken[place]) continue;
    taken[place] = true;
    auto& entry = entries.entries[place];
    assert(entry.alive.load(std::memory_order_relaxed) == 0);
    entry.set(description);
    entry.alive.store(number, std::memory_order_seq_cst);
    return place + 1;
  }
  return 0;
}

uint32_t Publication::publish(const KeyDescription& key) {
  if (table_ == nullptr) return 0;
  // Keys for the sources of Sends leave places for keys that peers have.
  const bool is_remote = (key.access & (roce::kRemoteWrite | roce::kRemoteRead)) != 0;
  constexpr uint32_t kPlaces = decltype(table_->keys)::kPlaces;
  return publish_in(table_->keys, keys_taken_, key.key, key, is_remote ? kPlaces : kPlaces / 2);
}

uint32_t Publication::publish(const QpDescription& qp) {
  return table_ == nullptr ? 0 : publish_in(table_->qps, qps_taken_, qp.qpn, qp, decltype(table_->qps)::kPlaces);
}

bool Publication::shows(uint32_t key, uint32_t domain, uint64_t address, uint64_t length) const {
  if (!has_memory_.load(std::memory_order_relaxed)) return false;
  const uint32_t ticket = table_->keys.find(key);
  if (ticket == 0) return false;
  const PublishedKey& shown = table_->keys.at(ticket);
  const uint64_t offset = address - shown.address.load(std::memory_order_relaxed);
  const uint64_t room = shown.length.load(std::memory_order_relaxed);
  return shown.domain.load(std::memory_order_relaxed) == domain && offset <= room && length <= room - offset;
}

void Publication::withdraw_qp(uint32_t ticket) {
  if (ticket == 0) return;
  table_->qps.at(ticket).alive.store(0, std::memory_order_seq_cst);
  // Before the program's next bytes, which a peer may copy: PeerMemory::Grant::queue_pair_lives(). The store does not
  // order later stores, and a load by LDAPR (armv8.3) in between does not either.
  std::atomic_thread_fence(std::memory_order_release);
}

bool Publication::stop_qp(uint32_t ticket) {
  if (ticket == 0) return true;
  withdraw_qp(ticket);
  return placers_.await_end_of(AnnouncedEntry::qp(ticket), kMaxWaitNs);
}

void Publication::revoke_key(uint32_t ticket) {
  if (ticket == 0) return;
  table_->keys.at(ticket).alive.store(0, std::memory_order_seq_cst);
  placers_.await_end_of(AnnouncedEntry::key(ticket));
  const std::lock_guard lock(mutex_);
  assert(keys_taken_[ticket - 1]);
  keys_taken_[ticket - 1] = false;
}

void Publication::revoke_qp(uint32_t ticket) {
  if (ticket == 0) return;
  withdraw_qp(ticket);
  placers_.await_end_of(AnnouncedEntry::qp(ticket));
  const std::lock_guard lock(mutex_);
  assert(qps_taken_[ticket - 1]);
  qps_taken_[ticket - 1] = false;
}

bool Publication::ask(Placer& placer, const Parties& parties) {
  assert(placer.challenge == 0);
  if (table_ == nullptr) return false;
  Challenge challenge;
  placer.challenge = challenges_.make(parties, challenge);
  if (placer.challenge == 0) return false;
  ProofWords& words = placer.memory.control().proof;
  words.address.store(challenge.address, std::memory_order_relaxed);
  words.seal.store(challenge.seal, std::memory_order_relaxed);
  words.asked.store(1, std::memory_order_release);
  return true;
}

Right Publication::judge(Placer& placer) {
  assert(table_ != nullptr && placer.challenge != 0);
  const ProofWords& words = placer.memory.control().proof;
  const Right claim = words.right.load(std::memory_order_acquire);
  if (claim == Right::kNone) return Right::kAsked;
  const Secret answer = {
      {words.answer[0].load(std::memory_order_relaxed), words.answer[1].load(std::memory_order_relaxed)}};
  const bool proved = challenges_.end(std::exchange(placer.challenge, 0), answer);
  if (is_peers_reason(claim)) return claim;
  if (!proved || claim != Right::kGranted) return Right::kNotProved;
  {
    const std::lock_guard lock(mutex_);
    if (!take_memory()) return Right::kNoRoom;
  }
  if (!placers_.add(placer)) return Right::kNoRoom;
  if (pass_table(placer)) return Right::kGranted;
  placers_.remove(placer);
  return Right::kNoRoom;
}

bool Publication::pass_table(const Placer& placer) const {
  const std::byte byte{0};
  const int files[] = {table_file_.get()};
  return send_message(placer.socket.get(), std::span(&byte, 1), files, MSG_DONTWAIT) == 0;
}

void Publication::forget(Placer& placer) {
  if (placer.challenge != 0) challenges_.end(std::exchange(placer.challenge, 0), {});
  placers_.remove(placer);
}

void Publication::close_in_child() {
  table_file_.reset();
}

}  // namespace dapple::soft
