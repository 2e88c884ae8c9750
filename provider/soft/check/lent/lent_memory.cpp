// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/lent_memory.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "provider/common/clock.hpp"

namespace dapple::soft::check {
namespace {

// A peer can answer outside of verbs, by TCP or through shared memory. No answer comes as soon as this.
constexpr uint64_t kShortestAnswer = 10'000;  // nanoseconds
// A program that asks for a completion is going to poll it. One that no longer wants it waits longer than this.
constexpr uint64_t kSoon = 100'000'000;  // nanoseconds

// The clock takes 20 ns, which is a tenth of a message.
uint64_t exact(uint64_t time) {
  return time == LentMemory::kNow ? now_ns() : time;
}

// Some milliseconds old, as the clock's ticks are.
uint64_t about(uint64_t time) {
  return time == LentMemory::kNow ? now_ns(CLOCK_MONOTONIC_COARSE) : time;
}

// Another thread may have taken `now` before the post returned.
bool is_certain(const Loan& loan, uint64_t now) {
  if (loan.returned == 0) return false;
  if (!loan.is_signaled) return now < loan.returned + kShortestAnswer;
  return loan.complete == 0 || now < loan.complete + kSoon;
}

bool is_lent(const Loan& loan) {
  return !loan.pieces.empty() || loan.address_handle != nullptr;
}

bool overlap(const Pieces& some, const Pieces& others) {
  for (const Piece& piece : some) {
    for (const Piece& other : others) {
      if (piece.overlaps(other.begin, other.end)) return true;
    }
  }
  return false;
}

bool has_key(const Pieces& pieces, uint32_t lkey) {
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.lkey == lkey; });
}

}  // namespace

// The place of the first byte that differs from the copy.
std::optional<uint64_t> LentMemory::change_in(const Loan& loan) {
  assert_held(mutex_);
  if (loan.copy == nullptr) return std::nullopt;
  assert(!loan.overwritten);
  size_t done = 0;
  for (const Piece& piece : loan.pieces) {
    const auto* memory = reinterpret_cast<const std::byte*>(piece.begin);
    const size_t size = piece.end - piece.begin;
    if (!loan.copy->has(done, size) || !mapped_.is_usable(memory, size, false)) return std::nullopt;
    if (const std::optional<uint64_t> at = loan.copy->difference(done, memory, size)) return at;
    done += size;
  }
  return std::nullopt;
}

void LentMemory::assert_consistent([[maybe_unused]] const OfQueuePair& queue) const {
  assert_held(mutex_);
  assert(queue.lent <= queue.loans.size() && queue.complete <= queue.loans.size() &&
         queue.loans.size() <= count_.load(std::memory_order_relaxed));
  assert(queue.lent <= lent_.load(std::memory_order_relaxed) && count_.load(std::memory_order_relaxed) <= kMax);
  assert(queue.earlier.size() <= earlier_.load(std::memory_order_relaxed));
  assert(queue.loans.empty() ||
         (queue.loans.front().number <= queue.loans.back().number && queue.loans.back().number < next_number_));
}

LentMemory::OfQueuePair* LentMemory::find(uint32_t qpn) {
  assert_held(mutex_);
  const auto found = queues_.find(qpn);
  return found == queues_.end() ? nullptr : &found->second;
}

Loan* LentMemory::numbered(uint32_t qpn, uint64_t number) {
  assert(number < next_number_);
  OfQueuePair* const queue = find(qpn);
  if (queue == nullptr) return nullptr;
  std::deque<Loan>& loans = queue->loans;
  const auto found =
      std::find_if(loans.rbegin(), loans.rend(), [&](const Loan& loan) { return loan.number <= number; });
  return found == loans.rend() || found->number != number ? nullptr : &*found;
}

// The loan counts no more.
void LentMemory::take_back(OfQueuePair& queue, const Loan& loan) {
  assert_held(mutex_);
  assert(is_lent(loan) && queue.lent > 0);
  for (const Piece& piece : loan.pieces) pages_.remove(piece.begin, piece.end);
  queue.lent--;
  lent_.store(lent_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

// The request stays in its place.
void LentMemory::end(OfQueuePair& queue, Loan& loan) {
  if (!is_lent(loan)) return;
  take_back(queue, loan);
  loan.pieces = {};
  loan.address_handle = nullptr;
  loan.copy.reset();
}

void LentMemory::drop_first(OfQueuePair& queue) {
  assert(!queue.loans.empty() && count_.load(std::memory_order_relaxed) > 0);
  if (is_lent(queue.loans.front())) take_back(queue, queue.loans.front());
  queue.loans.pop_front();
  if (queue.complete > 0) queue.complete--;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

// No completion tells of these alone.
void LentMemory::drop_ended(OfQueuePair& queue) {
  while (!queue.loans.empty() && !queue.loans.front().is_signaled && !is_lent(queue.loans.front())) drop_first(queue);
  assert_consistent(queue);
}

// Calls use(queue, loan) for each loan that has not ended. It may end it.
template <typename Use>
void LentMemory::for_each_lent(Use use) {
  assert_held(mutex_);
  for (auto& [qpn, queue] : queues_) {
    size_t left = queue.lent;
    for (auto loan = queue.loans.rbegin(); left > 0; ++loan) {
      assert(loan != queue.loans.rend());
      if (!is_lent(*loan)) continue;
      left--;
      use(queue, *loan);
    }
    drop_ended(queue);
  }
}

template <typename Fits>
std::optional<Loan> LentMemory::first(Fits fits) {
  assert_held(mutex_);
  for (const auto& [qpn, queue] : queues_) {
    if (queue.lent == 0) continue;
    const auto found = std::find_if(queue.loans.begin(), queue.loans.end(),
                                    [&](const Loan& loan) { return is_lent(loan) && fits(loan); });
    if (found != queue.loans.end()) return *found;
  }
  return std::nullopt;
}

uint64_t LentMemory::add(Loan loan) {
  const std::lock_guard lock(mutex_);
  OfQueuePair& queue = queues_[loan.owner.qpn];
  const uint64_t number = next_number_++;
  const bool has_room = count_.load(std::memory_order_relaxed) < kMax;
  if (queue.loans.empty() && (!is_lent(loan) || !has_room)) {
    if (!loan.is_signaled) return kNone;
    queue.earlier.add(loan.id, earlier_);
    return kEarlier;
  }
  if (!has_room) drop_first(queue);
  loan.number = number;
  if (is_lent(loan)) {
    for (const Piece& piece : loan.pieces) pages_.add(piece.begin, piece.end);
    queue.lent++;
    lent_.store(lent_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  queue.loans.push_back(std::move(loan));
  count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  assert_consistent(queue);
  return number;
}

uint64_t LentMemory::add_signaled(uint32_t qpn, uint64_t id) {
  Loan loan;
  loan.id = id;
  loan.owner.qpn = qpn;
  loan.is_signaled = true;
  return add(std::move(loan));
}

void LentMemory::keep(uint32_t qpn, uint64_t number, SharedCopy copy) {
  assert(number != kNone);
  if (number == kEarlier) return;
  const std::lock_guard lock(mutex_);
  Loan* loan = numbered(qpn, number);
  if (loan != nullptr && is_lent(*loan) && !loan->overwritten) loan->copy = std::move(copy);
}

void LentMemory::returned(uint32_t qpn, uint64_t number, uint64_t now) {
  if (number == kEarlier) return;
  const std::lock_guard lock(mutex_);
  // kSoon is much longer than the clock's ticks, and kShortestAnswer much shorter.
  if (Loan* loan = numbered(qpn, number)) loan->returned = loan->is_signaled ? about(now) : exact(now);
}

// It is one of the last.
void LentMemory::remove(uint32_t qpn, uint64_t number, uint64_t id) {
  const std::lock_guard lock(mutex_);
  OfQueuePair* const queue = find(qpn);
  if (queue == nullptr) return;
  if (number == kEarlier) {
    queue->earlier.take_newest(id, earlier_);
    return;
  }
  size_t behind = queue->loans.size();
  while (behind > 0 && queue->loans[behind - 1].number > number) behind--;
  if (behind == 0 || queue->loans[behind - 1].number != number) return;
  const auto loan = queue->loans.begin() + static_cast<std::ptrdiff_t>(behind - 1);
  if (is_lent(*loan)) take_back(*queue, *loan);
  queue->loans.erase(loan);
  if (behind <= queue->complete) queue->complete--;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  drop_ended(*queue);
}

void LentMemory::completed(uint32_t qpn, uint64_t id, uint64_t now) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  OfQueuePair* const found = find(qpn);
  if (found == nullptr) return;
  OfQueuePair& queue = *found;
  now = about(now);
  for (size_t i = queue.complete; i < queue.loans.size(); i++) {
    if (!queue.loans[i].is_signaled || queue.loans[i].id != id) continue;
    for (; queue.complete <= i; queue.complete++) queue.loans[queue.complete].complete = now;
    break;
  }
  assert_consistent(queue);
}

// free() of such memory waits for the lock, so the memory stays during the comparison.
std::vector<ChangedLoan> LentMemory::polled(uint32_t qpn, uint64_t id, uint64_t now) {
  std::vector<ChangedLoan> changed;
  if (count_.load(std::memory_order_acquire) == 0 && earlier_.load(std::memory_order_acquire) == 0) return changed;
  const std::lock_guard lock(mutex_);
  OfQueuePair* const found = find(qpn);
  if (found == nullptr) return changed;
  OfQueuePair& queue = *found;
  if (queue.earlier.take(id, earlier_)) return changed;
  const auto polled = std::find_if(queue.loans.begin(), queue.loans.end(),
                                   [&](const Loan& loan) { return loan.is_signaled && loan.id == id; });
  // The program may poll a completion from before the queue pair failed, or was changed.
  if (polled == queue.loans.end()) return changed;
  for (uint64_t last = polled->number; !queue.loans.empty() && queue.loans.front().number <= last; drop_first(queue)) {
    const Loan& loan = queue.loans.front();
    if (const std::optional<uint64_t> at = change_in(loan))
      changed.push_back({loan, *at, loan.is_signaled || is_certain(loan, exact(now))});
  }
  drop_ended(queue);
  return changed;
}

std::vector<ChangedLoan> LentMemory::peer_told(uint64_t now) {
  std::vector<ChangedLoan> changed;
  if (!any()) return changed;
  now = about(now);
  const std::lock_guard lock(mutex_);
  for_each_lent([&](OfQueuePair& queue, Loan& loan) {
    if (loan.is_signaled && is_certain(loan, now)) {
      if (const std::optional<uint64_t> at = change_in(loan)) changed.push_back({loan, *at, true});
    }
    end(queue, loan);
  });
  return changed;
}

void LentMemory::written_by(uint32_t qpn) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  for_each_lent([&](OfQueuePair& queue, Loan& loan) {
    if (loan.owner.qpn != qpn) end(queue, loan);
  });
}

void LentMemory::overwritten(const std::byte* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  if (!pages_.may_use(begin, begin + size)) return;
  for_each_lent([&](OfQueuePair&, Loan& loan) {
    for (const Piece& piece : loan.pieces) loan.overwritten = loan.overwritten || piece.overlaps(begin, begin + size);
    if (loan.overwritten) loan.copy.reset();
  });
}

void LentMemory::forget_memory(const void* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const Pieces gone = {{begin, begin + size, 0}};
  const std::lock_guard lock(mutex_);
  if (!pages_.may_use(begin, begin + size)) return;
  for_each_lent([&](OfQueuePair& queue, Loan& loan) {
    if (overlap(loan.pieces, gone)) end(queue, loan);
  });
}

void LentMemory::forget_key(uint32_t lkey) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  for_each_lent([&](OfQueuePair& queue, Loan& loan) {
    if (has_key(loan.pieces, lkey)) end(queue, loan);
  });
}

void LentMemory::forget(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  OfQueuePair* const queue = find(qpn);
  if (queue == nullptr) return;
  while (!queue->loans.empty()) drop_first(*queue);
  queue->earlier.clear(earlier_);
  queues_.erase(qpn);
}

void LentMemory::forget_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [qpn, queue] : queues_) {
    while (!queue.loans.empty()) drop_first(queue);
  }
  queues_.clear();
  earlier_.store(0);
  assert(count_.load(std::memory_order_relaxed) == 0 && !any());
}

std::optional<Loan> LentMemory::user_of(const void* memory, size_t size, std::optional<uint32_t> lkey, uint64_t now) {
  if (!any()) return std::nullopt;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  if (!pages_.may_use(begin, begin + size)) return std::nullopt;
  now = exact(now);
  return first([&](const Loan& loan) {
    return is_certain(loan, now) && std::any_of(loan.pieces.begin(), loan.pieces.end(), [&](const Piece& piece) {
             return piece.overlaps(begin, begin + size) && (!lkey || piece.lkey == *lkey);
           });
  });
}

std::optional<Loan> LentMemory::user_of_handle(const void* address_handle, uint64_t now) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  now = exact(now);
  return first([&](const Loan& loan) { return loan.address_handle == address_handle && is_certain(loan, now); });
}

std::optional<Loan> LentMemory::result_in(uint32_t qpn, const Pieces& pieces) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const OfQueuePair* const queue = find(qpn);
  if (queue == nullptr || queue->lent == 0) return std::nullopt;
  for (const Loan& loan : queue->loans) {
    if (loan.has_result && overlap(loan.pieces, pieces)) return loan;
  }
  return std::nullopt;
}

std::optional<Loan> LentMemory::any_in(const Pieces& pieces) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return first([&](const Loan& loan) { return overlap(loan.pieces, pieces); });
}

}  // namespace dapple::soft::check
