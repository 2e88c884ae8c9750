// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/peer_memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>
#include <cassert>
#include <utility>

#include "provider/soft/memory/ordered_copy.hpp"
#include "provider/soft/proof/process_memory.hpp"

namespace dapple::soft {
namespace {

constexpr int kNeededSeals = F_SEAL_SHRINK | F_SEAL_GROW;
static_assert(kAnnouncements < 32);

// Not the C library's functions: those are cancellation points.
int64_t write_at(int fd, const iovec* parts, size_t count, uint64_t address) {
  return syscall(SYS_pwritev, fd, parts, count, static_cast<unsigned long>(address), 0ul);
}

int64_t read_at(int fd, const iovec* parts, size_t count, uint64_t address) {
  return syscall(SYS_preadv, fd, parts, count, static_cast<unsigned long>(address), 0ul);
}

iovec part(const void* at, size_t size) {
  return {const_cast<void*>(at), size};
}

// Of memory that a peer may change meanwhile.
uint64_t load_once(const uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

const PublishedTable* map_table(int fd) {
  struct stat status = {};
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kNeededSeals) != kNeededSeals) return nullptr;
  if (fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(sizeof(PublishedTable))) return nullptr;
  // The kernel would fill a hole at the first access, and end the program if no memory is left.
  if (status.st_blocks * 512 < static_cast<blkcnt_t>(sizeof(PublishedTable))) return nullptr;
  void* mapped = mmap(nullptr, sizeof(PublishedTable), PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return nullptr;
  madvise(mapped, sizeof(PublishedTable), MADV_DONTFORK);
  return static_cast<const PublishedTable*>(mapped);
}

}  // namespace

PeerMemory::~PeerMemory() {
  if (table_ != nullptr) munmap(const_cast<PublishedTable*>(table_), sizeof *table_);
}

// A hostile peer could end, so that another process gets its number, and have a secret of its own in that process'
// data. But nothing is where hidden secrets are.
Right PeerMemory::prove(ProofWords& words, const Parties& parties, pid_t process, bool hidden) {
  assert(!memory_);
  const Challenge challenge = {words.address.load(std::memory_order_relaxed),
                               words.seal.load(std::memory_order_relaxed)};
  if (hidden && !RandomPage::may_have(challenge.address)) return Right::kOtherMemory;
  Secret secret;
  const Right right = open_process_memory(process, challenge, parties, memory_, secret);
  if (right != Right::kGranted) return right;
  for (size_t i = 0; i < 2; i++) words.answer[i].store(secret.words[i], std::memory_order_relaxed);
  return right;
}

void PeerMemory::open(OwnedFd table, Announcement* announcements, uint32_t own_slot, pid_t process) {
  if (table_ != nullptr || !memory_) return;
  table_ = map_table(table.get());
  if (table_ == nullptr) return;
  announcements_ = announcements;
  // A hostile peer may change its table at any time, so each number is read once and then checked.
  const uint64_t nonce = load_once(table_->nonce);
  if (!reaches(own_slot, nonce)) return;
  process_.open(process, {load_once(table_->guard.address), load_once(table_->guard.nonce)});
  nonce_ = nonce;
  usable_.store(true, std::memory_order_release);
}

// Permissions, namespaces and security modules all may be in the way, so this tries it.
bool PeerMemory::reaches(uint32_t own_slot, uint64_t expected) const {
  const uint64_t echo_address = load_once(table_->echoes_address) + own_slot * sizeof(uint64_t);
  uint64_t nonce = 0, echo = 0;
  const iovec nonce_part = part(&nonce, sizeof nonce);
  if (read_at(memory_.get(), &nonce_part, 1, load_once(table_->nonce_address)) != sizeof nonce || nonce != expected)
    return false;
  const uint64_t written = ~nonce;
  const iovec written_part = part(&written, sizeof written);
  const iovec echo_part = part(&echo, sizeof echo);
  return write_at(memory_.get(), &written_part, 1, echo_address) == sizeof written &&
         read_at(memory_.get(), &echo_part, 1, echo_address) == sizeof echo && echo == written;
}

Announcement* PeerMemory::claim() {
  uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    const auto free = static_cast<uint32_t>(std::countr_one(claimed));
    if (free >= kAnnouncements) return nullptr;
    if (claimed_.compare_exchange_weak(claimed, claimed | 1u << free, std::memory_order_acquire))
      return &announcements_[free];
  }
}

void PeerMemory::release(const Announcement* word) {
  assert(word >= announcements_ && word < announcements_ + kAnnouncements);
  const uint32_t bit = 1u << (word - announcements_);
  [[maybe_unused]] const uint32_t before = claimed_.fetch_and(~bit, std::memory_order_release);
  assert((before & bit) != 0);
}

bool PeerMemory::allows(const QpDescription& wanted, const roce::RemoteRange& range, uint32_t key_ticket,
                        uint32_t qp_ticket) const {
  const PublishedQp& qp = table_->qps.at(qp_ticket);
  const PublishedKey& key = table_->keys.at(key_ticket);
  if (qp.alive.load(std::memory_order_seq_cst) != wanted.qpn || key.alive.load(std::memory_order_seq_cst) != range.rkey)
    return false;
  // These do not change now: they are alive, and the peer sees the announcement.
  const uint32_t domain = qp.domain.load(std::memory_order_relaxed);
  const uint32_t access = qp.access.load(std::memory_order_relaxed) & key.access.load(std::memory_order_relaxed);
  if (qp.peer_qpn.load(std::memory_order_relaxed) != wanted.peer_qpn || !qp.has_addresses_of(wanted)) return false;
  if (key.domain.load(std::memory_order_relaxed) != domain || (access & wanted.access) != wanted.access) return false;
  const uint64_t offset = range.address - key.address.load(std::memory_order_relaxed);
  const uint64_t length = key.length.load(std::memory_order_relaxed);
  return offset <= length && range.length <= length - offset;
}

PeerMemory::Grant::Grant(PeerMemory& peer, const QpDescription& wanted, const roce::RemoteRange& range) : peer_(peer) {
  const uint32_t key_ticket = peer.table_->keys.find(range.rkey);
  const uint32_t qp_ticket = peer.table_->qps.find(wanted.qpn);
  if (key_ticket == 0 || qp_ticket == 0) return;
  word_ = peer.claim();
  if (word_ == nullptr) return;
  word_->tickets.store(announced(key_ticket, qp_ticket), std::memory_order_seq_cst);
  qp_ticket_ = qp_ticket;
  qpn_ = wanted.qpn;
  if (peer.allows(wanted, range, key_ticket, qp_ticket)) return;
  word_->tickets.store(0, std::memory_order_release);
  peer.release(word_);
  word_ = nullptr;
}

PeerMemory::Grant::~Grant() {
  if (word_ == nullptr) return;
  word_->tickets.store(0, std::memory_order_release);
  peer_.release(word_);
}

// The kernel copies one part after the other. The program there may poll the last bytes, as in copy_last_word_last().
// The descriptor also decides whether the process has ended, and writes to pages that are read-only.
bool PeerMemory::Grant::write(uint64_t address, const std::byte* from, size_t size) {
  assert(word_ != nullptr && size > 0);
  if (peer_.copies_once(size) && peer_.process_.write(address, from, size)) return true;
  const size_t last = size_of_last_word(address, size);
  const iovec parts[2] = {part(from, size - last), part(from + size - last, last)};
  const bool single = size == last;
  return peer_.copied(write_at(peer_.memory_.get(), parts + (single ? 1 : 0), single ? 1 : 2, address), size);
}

bool PeerMemory::Grant::read(uint64_t address, std::byte* to, size_t size) {
  assert(word_ != nullptr && size > 0);
  const GuardedProcess::Piece piece = {address, to, size};
  if (peer_.copies_once(size) && peer_.process_.read({&piece, 1})) return true;
  const iovec whole = part(to, size);
  return peer_.copied(read_at(peer_.memory_.get(), &whole, 1, address), size);
}

bool PeerMemory::Grant::queue_pair_lives() const {
  // Between the copy and the look. The owner withdraws the queue pair before its program may use the bytes again.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return peer_.table_->qps.at(qp_ticket_).alive.load(std::memory_order_relaxed) == qpn_;
}

bool PeerMemory::copied(int64_t result, size_t size) {
  assert(result <= static_cast<int64_t>(size));
  if (result == static_cast<int64_t>(size)) return true;
  // The process has ended, or executes another program.
  if (result == 0) usable_.store(false, std::memory_order_relaxed);
  return false;
}

}  // namespace dapple::soft
