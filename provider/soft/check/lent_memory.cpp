// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent_memory.hpp"

#include <time.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

namespace dapple::soft::check {
namespace {

// A peer can answer outside of verbs, by TCP or through shared memory. No answer comes as soon as this.
constexpr int64_t kShortestAnswer = 10'000;  // nanoseconds
// A program that asks for a completion is going to poll it. One that no longer wants it waits longer than this.
constexpr int64_t kSoon = 100'000'000;  // nanoseconds

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool is_certain(const Loan& loan, int64_t at) {
  return loan.returned != 0 && at - loan.returned < (loan.is_signaled ? kSoon : kShortestAnswer);
}

}  // namespace

uint64_t LentMemory::add(Loan loan) {
  const std::lock_guard lock(mutex_);
  loan.number = next_number_++;
  loans_.push_back(std::move(loan));
  if (loans_.size() > kMost) loans_.pop_front();
  any_.store(true, std::memory_order_release);
  assert(loans_.size() <= kMost);
  return next_number_ - 1;
}

void LentMemory::returned(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(loans_.rbegin(), loans_.rend(), [&](const Loan& loan) { return loan.number == number; });
  if (found != loans_.rend()) found->returned = now();
}

void LentMemory::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.number == number; });
}

void LentMemory::end_all() {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  loans_.clear();
  any_.store(false, std::memory_order_relaxed);
}

void LentMemory::written_by(uint32_t qpn) {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.qpn != qpn; });
}

void LentMemory::forget(const void* queue_pair) {
  const std::lock_guard lock(mutex_);
  std::erase_if(loans_, [&](const Loan& loan) { return loan.queue_pair == queue_pair; });
}

std::optional<Loan> LentMemory::user_of(const void* memory, size_t size, std::optional<uint32_t> lkey) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const int64_t at = now();
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (!is_certain(loan, at)) continue;
    for (const Piece& piece : loan.pieces) {
      if (piece.overlaps(begin, begin + size) && (!lkey || piece.lkey == *lkey)) return loan;
    }
  }
  return std::nullopt;
}

std::optional<Loan> LentMemory::result_in(const void* queue_pair, const std::vector<Piece>& pieces) {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const Loan& loan : loans_) {
    if (!loan.has_result || loan.queue_pair != queue_pair) continue;
    for (const Piece& piece : loan.pieces) {
      for (const Piece& other : pieces) {
        if (piece.overlaps(other.begin, other.end)) return loan;
      }
    }
  }
  return std::nullopt;
}

}  // namespace dapple::soft::check
