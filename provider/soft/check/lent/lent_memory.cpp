// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/lent_memory.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

namespace dapple::soft::check {
namespace {

// A peer can answer outside of verbs, by TCP or through shared memory. No answer comes as soon as this.
constexpr uint64_t kShortestAnswer = 10'000;  // nanoseconds
// A program that asks for a completion is going to poll it. One that no longer wants it waits longer than this.
constexpr uint64_t kSoon = 100'000'000;  // nanoseconds

// Another thread may have taken `now` before the post returned.
bool is_certain(const Loan& loan, uint64_t now) {
  return loan.returned != 0 && now < loan.returned + (loan.is_signaled ? kSoon : kShortestAnswer);
}

bool overlap(const Pieces& some, const Pieces& others) {
  for (const Piece& piece : some) {
    for (const Piece& other : others) {
      if (piece.overlaps(other.begin, other.end)) return true;
    }
  }
  return false;
}

}  // namespace

// The place of the first byte that differs from the copy.
std::optional<uint64_t> LentMemory::change_in(const Loan& loan) {
  assert_held(mutex_);
  if (loan.copy == nullptr) return std::nullopt;
  size_t done = 0;
  for (const Piece& piece : loan.pieces) {
    const auto* memory = reinterpret_cast<const std::byte*>(piece.begin);
    const size_t size = piece.end - piece.begin;
    if (!loan.copy->has(done, size) || !mapped_.has(memory, size, false)) return std::nullopt;
    if (const std::optional<uint64_t> at = loan.copy->difference(done, memory, size)) return at;
    done += size;
  }
  return std::nullopt;
}

void LentMemory::assert_consistent() const {
  assert_held(mutex_);
  assert(loans_.size() <= kMax && (loans_.empty() || any_.load(std::memory_order_relaxed)));
  assert(loans_.empty() || (loans_.front().number <= loans_.back().number && loans_.back().number < next_number_));
}

Loan* LentMemory::numbered(uint64_t number) {
  assert_held(mutex_);
  assert(number < next_number_);
  const auto found =
      std::find_if(loans_.rbegin(), loans_.rend(), [&](const Loan& loan) { return loan.number == number; });
  return found == loans_.rend() ? nullptr : &*found;
}

uint64_t LentMemory::add(Loan loan) {
  const std::lock_guard lock(mutex_);
  loan.number = next_number_++;
  loans_.push_back(std::move(loan));
  if (loans_.size() > kMax) loans_.pop_front();
  any_.store(true, std::memory_order_release);
  assert_consistent();
  return next_number_ - 1;
}

void LentMemory::keep(uint64_t number, SharedCopy copy) {
  const std::lock_guard lock(mutex_);
  Loan* loan = numbered(number);
  if (loan != nullptr && !loan->overwritten) loan->copy = std::move(copy);
  assert_consistent();
}

void LentMemory::returned(uint64_t number, uint64_t now) {
  const std::lock_guard lock(mutex_);
  if (Loan* loan = numbered(number)) loan->returned = now;
}

void LentMemory::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.number == number; });
  assert_consistent();
}

// free() of such memory waits for the lock, so the memory stays during the comparison.
std::vector<ChangedLoan> LentMemory::end_all(uint64_t now) {
  std::vector<ChangedLoan> changed;
  if (!any_.load(std::memory_order_acquire)) return changed;
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (!loan.is_signaled || loan.overwritten || !is_certain(loan, now)) continue;
    if (const std::optional<uint64_t> at = change_in(loan)) changed.push_back({loan, *at});
  }
  loans_.clear();
  any_.store(false, std::memory_order_relaxed);
  assert_consistent();
  return changed;
}

void LentMemory::written_by(uint32_t qpn) {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.owner.qpn != qpn; });
  assert_consistent();
}

void LentMemory::overwritten(const std::byte* memory, size_t size) {
  if (!any_.load(std::memory_order_acquire)) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (Loan& loan : loans_) {
    for (const Piece& piece : loan.pieces) loan.overwritten = loan.overwritten || piece.overlaps(begin, begin + size);
    if (loan.overwritten) loan.copy.reset();
  }
}

void LentMemory::forget_memory(const void* memory, size_t size) {
  if (!any_.load(std::memory_order_acquire)) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const Pieces gone = {{begin, begin + size, 0}};
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return overlap(loan.pieces, gone); });
  assert_consistent();
}

void LentMemory::forget_key(uint32_t lkey) {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) {
    return std::any_of(loan.pieces.begin(), loan.pieces.end(), [&](const Piece& piece) { return piece.lkey == lkey; });
  });
}

void LentMemory::forget(const void* queue_pair) {
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.queue_pair == queue_pair; });
  assert_consistent();
}

void LentMemory::forget_all() {
  const std::lock_guard lock(mutex_);
  loans_.clear();
  any_.store(false, std::memory_order_relaxed);
}

std::optional<Loan> LentMemory::user_of(const void* memory, size_t size, std::optional<uint32_t> lkey, uint64_t now) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (!is_certain(loan, now)) continue;
    for (const Piece& piece : loan.pieces) {
      if (piece.overlaps(begin, begin + size) && (!lkey || piece.lkey == *lkey)) return loan;
    }
  }
  return std::nullopt;
}

std::optional<Loan> LentMemory::user_of_handle(const void* address_handle, uint64_t now) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(loans_.begin(), loans_.end(), [&](const Loan& loan) {
    return loan.address_handle == address_handle && is_certain(loan, now);
  });
  return found == loans_.end() ? std::nullopt : std::optional(*found);
}

std::optional<Loan> LentMemory::result_in(const void* queue_pair, const Pieces& pieces) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (loan.has_result && loan.queue_pair == queue_pair && overlap(loan.pieces, pieces)) return loan;
  }
  return std::nullopt;
}

std::optional<Loan> LentMemory::any_in(const Pieces& pieces) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (overlap(loan.pieces, pieces)) return loan;
  }
  return std::nullopt;
}

}  // namespace dapple::soft::check
