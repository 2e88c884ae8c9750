// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/withheld_bytes.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

namespace dapple::soft::check {
namespace {

std::byte* memory_at(uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);
}

size_t length_of(const std::vector<Piece>& pieces) {
  size_t length = 0;
  for (const Piece& piece : pieces) length += piece.end - piece.begin;
  return length;
}

bool overlap_each_other(const std::vector<Piece>& pieces) {
  for (size_t i = 0; i < pieces.size(); i++) {
    for (size_t j = i + 1; j < pieces.size(); j++) {
      if (pieces[i].overlaps(pieces[j].begin, pieces[j].end)) return true;
    }
  }
  return false;
}

// The place of the first byte that is not the pattern.
std::optional<size_t> unlike_pattern(const std::byte* memory, size_t size) {
  if (size == 0 || (memory[0] == WithheldBytes::kPattern && memcmp(memory, memory + 1, size - 1) == 0))
    return std::nullopt;
  const std::byte* const end = memory + size;
  const std::byte* const differs =
      std::find_if(memory, end, [](std::byte byte) { return byte != WithheldBytes::kPattern; });
  return differs == end ? std::nullopt : std::optional(static_cast<size_t>(differs - memory));
}

// Calls use(memory, offset, size) for each piece of the first `size` bytes.
template <typename Use>
void for_each_part(const std::vector<Piece>& pieces, size_t size, Use use) {
  size_t offset = 0;
  for (const Piece& piece : pieces) {
    const size_t part = std::min(piece.end - piece.begin, size - offset);
    if (part == 0) return;
    use(memory_at(piece.begin), offset, part);
    offset += part;
  }
}

}  // namespace

void WithheldBytes::assert_consistent() const {
  assert(users_.empty() || users_.rbegin()->first < next_number_);
  assert(withheld_.size() + others_.size() >= users_.size());
  assert(any() == !users_.empty());
}

WithheldBytes::User& WithheldBytes::user(uint64_t number) const {
  const auto found = users_.find(number);
  assert(found != users_.end());
  return *found->second;
}

bool WithheldBytes::is_used(uintptr_t begin, uintptr_t end) const {
  const uintptr_t first = begin > longest_other_ ? begin - longest_other_ : 0;
  for (auto found = others_.lower_bound(first); found != others_.end() && found->first < end; ++found) {
    if (found->second.end > begin) return true;
  }
  return false;
}

// The first piece with some of these bytes.
std::map<uintptr_t, WithheldBytes::Place>::iterator WithheldBytes::withheld_at(uintptr_t begin, uintptr_t end) {
  auto found = withheld_.upper_bound(begin);
  if (found != withheld_.begin() && std::prev(found)->second.end > begin) --found;
  return found != withheld_.end() && found->first < end ? found : withheld_.end();
}

uint64_t WithheldBytes::add(Request request, bool fills) {
  std::erase_if(request.pieces, [](const Piece& piece) { return piece.begin >= piece.end; });
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_number_++;
  if (request.pieces.empty()) return number;
  bool is_shared = overlap_each_other(request.pieces);
  for (const Piece& piece : request.pieces) {
    is_shared = is_shared || is_used(piece.begin, piece.end) || withheld_at(piece.begin, piece.end) != withheld_.end();
    yield_range(piece.begin, piece.end);
    is_shared = is_shared || !mapped_.has(memory_at(piece.begin), piece.end - piece.begin, fills);
  }
  User& user = *users_.emplace(number, std::make_unique<User>(std::move(request))).first->second;
  user.qpn = user.owner.qpn;
  (user.receives != nullptr ? receives_[user.receives] : queue_pairs_[user.qpn].results).push_back(number);
  any_.store(true, std::memory_order_release);
  if (!is_shared && BufferCopy::all_bytes.load() + length_of(user.pieces) <= BufferCopy::kMaxBytes) {
    withhold(number, user, fills);
  } else {
    stop_withholding(number, user);
  }
  assert_consistent();
  return number;
}

void WithheldBytes::withhold(uint64_t number, User& user, bool fills) {
  const size_t size = length_of(user.pieces);
  user.bytes = std::make_unique<BufferCopy>(size);
  for_each_part(user.pieces, size, [&](std::byte* memory, size_t offset, size_t part) {
    user.bytes->put(offset, memory, part);
    if (fills) memset(memory, static_cast<int>(kPattern), part);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    withheld_.emplace(begin, Place{begin + part, number, offset});
  });
  if (fills) user.filled = size;
}

void WithheldBytes::add_signaled(uint32_t qpn, uint64_t id) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || found->second.results.empty()) return;
  found->second.signaled.push_back({next_number_, id});
}

void WithheldBytes::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  release(number);
  assert_consistent();
}

// Notes whether the program has changed these bytes, which are about to be stored or released.
void WithheldBytes::note_change(User& user, size_t offset, const std::byte* memory, size_t size) {
  if (user.changed) return;
  const size_t filled = std::clamp(user.filled, offset, offset + size) - offset;
  if (const std::optional<size_t> at = unlike_pattern(memory, filled)) {
    user.changed = offset + *at;
  } else if (filled < size) {
    user.changed = user.bytes->difference(offset + filled, memory + filled, size - filled);
  }
}

bool WithheldBytes::store(uint32_t qpn, std::byte* memory, const std::byte* from, size_t size) {
  if (!any()) return false;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto found = withheld_at(begin, begin + size);
  if (found == withheld_.end()) return false;
  const Place place = found->second;
  User& user = this->user(place.number);
  const size_t offset = place.offset + (begin - found->first);
  // Bytes come in order, and again if a packet was lost.
  const bool is_plain = found->first <= begin && begin + size <= place.end && offset <= user.arrived;
  if (!is_plain || (user.qpn != 0 && user.qpn != qpn)) {
    yield_range(begin, begin + size);
    return false;
  }
  user.qpn = qpn;
  note_change(user, offset, memory, size);
  user.bytes->put(offset, from, size);
  memset(memory, static_cast<int>(kPattern), size);
  user.arrived = std::max(user.arrived, offset + size);
  user.filled = std::max(user.filled, user.arrived);
  assert_consistent();
  return true;
}

// Bytes that have not arrived are as they were at the post, unless the program has changed them.
void WithheldBytes::put_into_place(User& user) {
  for_each_part(user.pieces, user.filled, [&](std::byte* memory, size_t offset, size_t part) {
    if (!mapped_.has(memory, part, true)) return;
    const size_t arrived = std::clamp(user.arrived, offset, offset + part) - offset;
    note_change(user, offset, memory, arrived);
    user.bytes->take(offset, memory, arrived);
    for (size_t i = arrived; i < part; i++) {
      if (memory[i] == kPattern) user.bytes->take(offset + i, memory + i, 1);
    }
  });
}

// From now on the request's bytes go into the memory itself.
void WithheldBytes::stop_withholding(uint64_t number, User& user) {
  user.bytes.reset();
  size_t offset = 0;
  for (const Piece& piece : user.pieces) {
    const auto found = withheld_.find(piece.begin);
    if (found != withheld_.end() && found->second.number == number) withheld_.erase(found);
    others_.emplace(piece.begin, Place{piece.end, number, offset});
    longest_other_ = std::max(longest_other_, piece.end - piece.begin);
    offset += piece.end - piece.begin;
  }
}

void WithheldBytes::yield_range(uintptr_t begin, uintptr_t end) {
  for (auto found = withheld_at(begin, end); found != withheld_.end(); found = withheld_at(begin, end)) {
    const uint64_t number = found->second.number;
    put_into_place(user(number));
    stop_withholding(number, user(number));
  }
}

void WithheldBytes::yield(const void* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  yield_range(begin, begin + size);
  assert_consistent();
}

void WithheldBytes::yield(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) yield(memory_at(piece.begin), piece.end - piece.begin);
}

void WithheldBytes::yield_key(uint32_t lkey) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  for (auto& [number, user] : users_) {
    const bool has_key =
        std::any_of(user->pieces.begin(), user->pieces.end(), [&](const Piece& piece) { return piece.lkey == lkey; });
    if (!has_key || user->bytes == nullptr) continue;
    put_into_place(*user);
    stop_withholding(number, *user);
  }
  assert_consistent();
}

void WithheldBytes::forget_memory(const void* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (auto found = withheld_at(begin, begin + size); found != withheld_.end();
       found = withheld_at(begin, begin + size)) {
    const uint64_t number = found->second.number;
    stop_withholding(number, user(number));
  }
  assert_consistent();
}

// Several receives of a shared queue may have one id. The one that is complete is among those whose bytes have come by
// this queue pair, or has no bytes at all.
void WithheldBytes::receive_completes(const void* receives, uint64_t id, uint32_t qpn) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto queue = receives_.find(receives);
  if (queue == receives_.end()) return;
  const auto waits = [&](uint32_t user_qpn) {
    return std::find_if(queue->second.begin(), queue->second.end(),
                        [&](uint64_t number) { return user(number).id == id && user(number).qpn == user_qpn; });
  };
  auto found = waits(qpn);
  if (found == queue->second.end()) found = waits(0);
  if (found == queue->second.end()) return;
  const uint64_t number = *found;
  user(number).qpn = qpn;
  queue->second.erase(found);
  queue_pairs_[qpn].complete.push_back(number);
}

std::vector<WithheldBytes::Changed> WithheldBytes::polled(uint32_t qpn, uint64_t id, bool is_receive) {
  std::vector<Changed> changed;
  if (!any()) return changed;
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end()) return changed;
  OfQueuePair& queues = found->second;
  const auto let_go = [&](uint64_t number) {
    if (std::optional<Changed> one = release(number)) changed.push_back(std::move(*one));
  };
  if (is_receive) {
    const auto polled = std::find_if(queues.complete.begin(), queues.complete.end(),
                                     [&](uint64_t number) { return user(number).id == id; });
    if (polled != queues.complete.end()) let_go(*polled);
  } else {
    const auto polled = std::find_if(queues.signaled.begin(), queues.signaled.end(),
                                     [&](const Signaled& signaled) { return signaled.id == id; });
    if (polled == queues.signaled.end()) return changed;
    const uint64_t behind = polled->number;
    queues.signaled.erase(queues.signaled.begin(), polled + 1);
    // The completion tells of all earlier requests of the send queue, too.
    while (!queues.results.empty() && queues.results.front() < behind) let_go(queues.results.front());
    if (queues.results.empty()) queues.signaled.clear();
  }
  assert_consistent();
  return changed;
}

// A change of the program counts only if the bytes of the device were there, too.
std::optional<WithheldBytes::Changed> WithheldBytes::release(uint64_t number) {
  const auto found = users_.find(number);
  if (found == users_.end()) return std::nullopt;
  const std::unique_ptr<User> user = std::move(found->second);
  users_.erase(found);
  if (user->bytes != nullptr) put_into_place(*user);
  take_out(number, *user);
  any_.store(!users_.empty(), std::memory_order_relaxed);
  if (!user->changed || user->arrived == 0) return std::nullopt;
  const uint64_t at = *user->changed;
  return Changed{std::move(*user), at};
}

void WithheldBytes::take_out(uint64_t number, User& user) {
  for (const Piece& piece : user.pieces) {
    const auto withheld = withheld_.find(piece.begin);
    if (withheld != withheld_.end() && withheld->second.number == number) withheld_.erase(withheld);
    auto [other, end] = others_.equal_range(piece.begin);
    while (other != end && other->second.number != number) ++other;
    if (other != end) others_.erase(other);
  }
  if (user.receives != nullptr) std::erase(receives_[user.receives], number);
  if (const auto queues = queue_pairs_.find(user.qpn); queues != queue_pairs_.end()) {
    std::erase(queues->second.results, number);
    std::erase(queues->second.complete, number);
  }
}

void WithheldBytes::end(uint32_t qpn, const void* receives) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  Numbers ending;
  if (const auto queues = queue_pairs_.find(qpn); queues != queue_pairs_.end()) {
    ending = queues->second.results;
    ending.insert(ending.end(), queues->second.complete.begin(), queues->second.complete.end());
  }
  if (const auto queue = receives_.find(receives); queue != receives_.end()) {
    std::copy_if(queue->second.begin(), queue->second.end(), std::back_inserter(ending),
                 [&](uint64_t number) { return user(number).qpn == qpn; });
  }
  for (const uint64_t number : ending) release(number);
  queue_pairs_.erase(qpn);
  if (const auto queue = receives_.find(receives); queue != receives_.end() && queue->second.empty())
    receives_.erase(queue);
  assert_consistent();
}

void WithheldBytes::end(const void* receives) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto queue = receives_.find(receives);
  if (queue == receives_.end()) return;
  const Numbers ending = queue->second;
  for (const uint64_t number : ending) release(number);
  receives_.erase(receives);
  assert_consistent();
}

}  // namespace dapple::soft::check
