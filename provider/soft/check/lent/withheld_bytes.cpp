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

size_t length_of(const Pieces& pieces) {
  size_t length = 0;
  for (const Piece& piece : pieces) length += piece.end - piece.begin;
  return length;
}

bool overlap_each_other(const Pieces& pieces) {
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
void for_each_part(const Pieces& pieces, size_t size, Use use) {
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
  assert_held(mutex_);
  assert(count_ <= next_number_);
  assert(withheld_.size() + others_.size() >= count_);
  assert(any() == (count_ != 0));
  assert(overwritable_.size() <= kMaxOverwritable && any_overwritable_.load() == !overwritable_.empty());
}

bool WithheldBytes::is_used(uintptr_t begin, uintptr_t end) const {
  assert_held(mutex_);
  const uintptr_t first = begin > longest_other_ ? begin - longest_other_ : 0;
  for (auto found = others_.lower_bound(first); found != others_.end() && found->first < end; ++found) {
    if (found->second.end > begin) return true;
  }
  return false;
}

// The first piece with some of these bytes.
std::map<uintptr_t, WithheldBytes::UserPart>::iterator WithheldBytes::withheld_at(uintptr_t begin, uintptr_t end) {
  assert_held(mutex_);
  auto found = withheld_.upper_bound(begin);
  if (found != withheld_.begin() && std::prev(found)->second.end > begin) --found;
  return found != withheld_.end() && found->first < end ? found : withheld_.end();
}

uint64_t WithheldBytes::add(Request request, bool fills) {
  request.pieces.erase_if([](const Piece& piece) { return piece.begin >= piece.end; });
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_number_++;
  if (request.pieces.empty()) return number;
  bool is_shared = overlap_each_other(request.pieces);
  for (const Piece& piece : request.pieces) {
    is_shared = is_shared || is_used(piece.begin, piece.end) || withheld_at(piece.begin, piece.end) != withheld_.end();
    yield_range(piece.begin, piece.end);
    is_shared = is_shared || !mapped_.has(memory_at(piece.begin), piece.end - piece.begin, fills);
  }
  Users& users = request.receives != nullptr ? receives_[request.receives] : queue_pairs_[request.owner.qpn].results;
  User& user = *users.emplace_back(std::make_unique<User>(number, std::move(request)));
  user.qpn = user.owner.qpn;
  count_++;
  any_.store(true, std::memory_order_release);
  if (!is_shared && BufferCopy::all_bytes.load() + length_of(user.pieces) <= BufferCopy::kMaxBytes) {
    withhold(user, fills);
  } else {
    stop_withholding(user);
  }
  assert_consistent();
  return number;
}

void WithheldBytes::withhold(User& user, bool fills) {
  assert_held(mutex_);
  assert(user.bytes == nullptr && user.arrived == 0);
  const size_t size = length_of(user.pieces);
  user.bytes = std::make_unique<BufferCopy>(size);
  for_each_part(user.pieces, size, [&](std::byte* memory, size_t offset, size_t part) {
    user.bytes->put(offset, memory, part);
    if (fills) memset(memory, static_cast<int>(kPattern), part);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    withheld_.emplace(begin, UserPart{begin + part, &user, offset});
  });
  if (fills) user.filled = size;
  if (user.receives == nullptr) close(user, size);
}

// The first `size` bytes are not the program's. A program may have data of its own in the rest of a receive's buffer,
// if its peers' messages are never that long: UCX has.
void WithheldBytes::close(User& user, size_t size) {
  assert_held(mutex_);
  constexpr size_t kSmallestPage = 4096;
  if (size < kSmallestPage) return;
  Pieces pieces;
  for_each_part(user.pieces, size, [&](const std::byte* memory, size_t offset, size_t part) {
    if (!mapped_.is_plain(memory, part)) return;
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    pieces.push_back({begin, begin + part, 0});
    // The last look before nobody can change them.
    if (user.arrived != 0) note_change(user, offset, memory, part);
  });
  user.closed.close(pieces, {user.receives != nullptr, user.owner, user.posted});
}

// Many requests have one id, so the next completion of an id may be that of a request before the first result.
uint64_t WithheldBytes::add_signaled(uint32_t qpn, uint64_t id) {
  const std::lock_guard lock(mutex_);
  OfQueuePair& queues = queue_pairs_[qpn];
  if (queues.results.empty()) {
    queues.earlier.add(id, earlier_);
    return kEarlier;
  }
  queues.signaled.push_back({next_number_, id});
  return next_number_++;
}

// If it stayed, the completion of a later request with this id would be taken for its own.
void WithheldBytes::remove_signaled(uint32_t qpn, uint64_t number, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end()) return;
  OfQueuePair& queues = found->second;
  const size_t erased =
      std::erase_if(queues.signaled, [&](const Signaled& signaled) { return signaled.number == number; });
  // The last result may have been polled meanwhile.
  if (erased == 0) queues.earlier.take_newest(id, earlier_);
}

// It waits: the device has never had it.
void WithheldBytes::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const bool was_there =
      std::any_of(receives_.begin(), receives_.end(), [&](auto& queue) { return remove_from(queue.second, number); }) ||
      std::any_of(queue_pairs_.begin(), queue_pairs_.end(),
                  [&](auto& queues) { return remove_from(queues.second.results, number); });
  if (was_there) assert_consistent();
}

// It is one of the last.
bool WithheldBytes::remove_from(Users& users, uint64_t number) {
  const auto found =
      std::find_if(users.rbegin(), users.rend(), [&](const auto& user) { return user->number <= number; });
  if (found == users.rend() || (*found)->number != number) return false;
  release(users, std::prev(found.base()));
  return true;
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

void WithheldBytes::note_change_of_open(User& user, size_t offset, const std::byte* memory, size_t size) {
  user.closed.for_each_open(
      memory, size, [&](size_t at, size_t open_size) { note_change(user, offset + at, memory + at, open_size); });
}

bool WithheldBytes::store(uint32_t qpn, std::byte* memory, const std::byte* from, size_t size) {
  if (!any()) return false;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto found = withheld_at(begin, begin + size);
  if (found == withheld_.end()) return false;
  const UserPart part = found->second;
  User& user = *part.user;
  const size_t offset = part.offset + (begin - found->first);
  // Bytes come in order, and again if a packet was lost.
  const bool is_plain = found->first <= begin && begin + size <= part.end && offset <= user.arrived;
  if (!is_plain || (user.qpn != 0 && user.qpn != qpn)) {
    yield_range(begin, begin + size);
    return false;
  }
  user.qpn = qpn;
  note_change_of_open(user, offset, memory, size);
  user.bytes->put(offset, from, size);
  user.closed.for_each_open(
      memory, size, [&](size_t at, size_t open_size) { memset(memory + at, static_cast<int>(kPattern), open_size); });
  user.arrived = std::max(user.arrived, offset + size);
  user.filled = std::max(user.filled, user.arrived);
  assert_consistent();
  return true;
}

// Bytes that have not arrived are as they were at the post, unless the program has changed them.
void WithheldBytes::put_into_place(User& user) {
  assert_held(mutex_);
  assert(user.bytes != nullptr && user.arrived <= user.filled);
  user.closed.open();
  for_each_part(user.pieces, user.filled, [&](std::byte* memory, size_t offset, size_t part) {
    if (!mapped_.has(memory, part, true)) return;
    const size_t arrived = std::clamp(user.arrived, offset, offset + part) - offset;
    note_change_of_open(user, offset, memory, arrived);
    user.bytes->take(offset, memory, arrived);
    for (size_t i = arrived; i < part; i++) {
      if (memory[i] == kPattern) user.bytes->take(offset + i, memory + i, 1);
    }
  });
}

// From now on the request's bytes go into the memory itself.
void WithheldBytes::stop_withholding(User& user) {
  assert_held(mutex_);
  user.bytes.reset();
  user.closed.open();
  size_t offset = 0;
  for (const Piece& piece : user.pieces) {
    const auto found = withheld_.find(piece.begin);
    if (found != withheld_.end() && found->second.user == &user) withheld_.erase(found);
    others_.emplace(piece.begin, UserPart{piece.end, &user, offset});
    longest_other_ = std::max(longest_other_, piece.end - piece.begin);
    offset += piece.end - piece.begin;
  }
  may_be_overwritten(user);
}

void WithheldBytes::may_be_overwritten(User& user) {
  assert_held(mutex_);
  if (!user.is_complete || user.bytes != nullptr || user.arrived == 0) return;
  overwritable_.push_back(&user);
  if (overwritable_.size() > kMaxOverwritable) overwritable_.pop_front();
  any_overwritable_.store(true, std::memory_order_relaxed);
}

// The oldest receive that has no completion and some of these bytes.
std::optional<WithheldBytes::Request> WithheldBytes::waiting_at(uintptr_t begin, uintptr_t end) const {
  assert_held(mutex_);
  const User* oldest = nullptr;
  for (const auto& [first, part] : others_) {
    const bool waits = part.user->receives != nullptr && !part.user->is_complete;
    if (!waits || first >= end || part.end <= begin) continue;
    if (oldest == nullptr || part.user->number < oldest->number) oldest = part.user;
  }
  return oldest == nullptr ? std::nullopt : std::optional<Request>(*oldest);
}

// The memory holds the last message.
std::optional<WithheldBytes::Overwritten> WithheldBytes::overwrite(const std::byte* memory, const std::byte* from,
                                                                   size_t size) {
  if (!may_overwrite()) return std::nullopt;
  const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + size;
  const std::lock_guard lock(mutex_);
  for (auto user = overwritable_.rbegin(); user != overwritable_.rend(); ++user) {
    User& first = **user;
    bool is_there = false;
    std::optional<uint64_t> differs;
    for_each_part(first.pieces, first.arrived, [&](const std::byte* bytes, size_t offset, size_t part) {
      const uintptr_t from_here = std::max(begin, reinterpret_cast<uintptr_t>(bytes));
      const uintptr_t to_here = std::min(end, reinterpret_cast<uintptr_t>(bytes) + part);
      if (from_here >= to_here) return;
      is_there = true;
      const std::byte* const old = memory_at(from_here);
      const std::byte* const old_end = memory_at(to_here);
      const std::byte* const differing = std::mismatch(old, old_end, from + (from_here - begin)).first;
      if (differing != old_end && !differs) differs = offset + static_cast<size_t>(differing - bytes);
    });
    if (!is_there) continue;
    if (!differs) return std::nullopt;
    Overwritten overwritten = {first, waiting_at(begin, end), *differs};
    overwritable_.erase(std::next(user).base());
    any_overwritable_.store(!overwritable_.empty(), std::memory_order_relaxed);
    assert_consistent();
    return overwritten;
  }
  return std::nullopt;
}

void WithheldBytes::yield_range(uintptr_t begin, uintptr_t end) {
  for (auto found = withheld_at(begin, end); found != withheld_.end(); found = withheld_at(begin, end)) {
    User& user = *found->second.user;
    put_into_place(user);
    stop_withholding(user);
  }
}

void WithheldBytes::yield(const void* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  yield_range(begin, begin + size);
  assert_consistent();
}

void WithheldBytes::yield(const Pieces& pieces) {
  for (const Piece& piece : pieces) yield(memory_at(piece.begin), piece.end - piece.begin);
}

void WithheldBytes::yield_key(uint32_t lkey) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  std::vector<User*> with_key;
  for (const auto& [begin, part] : withheld_) {
    const Pieces& pieces = part.user->pieces;
    if (std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.lkey == lkey; }))
      with_key.push_back(part.user);
  }
  for (User* user : with_key) {
    if (user->bytes == nullptr) continue;
    put_into_place(*user);
    stop_withholding(*user);
  }
  assert_consistent();
}

void WithheldBytes::forget_memory(const void* memory, size_t size) {
  if (!any()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (auto found = withheld_at(begin, begin + size); found != withheld_.end();
       found = withheld_at(begin, begin + size)) {
    stop_withholding(*found->second.user);
  }
  assert_consistent();
}

// Several receives of a shared queue may have one id. The one that is complete is among those whose bytes have come by
// this queue pair, or has no bytes at all.
void WithheldBytes::receive_completes(const void* receives, uint64_t id, uint32_t qpn, size_t size) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto queue = receives_.find(receives);
  if (queue == receives_.end()) return;
  Users& waiting = queue->second;
  const auto waits = [&](uint32_t user_qpn) {
    return std::find_if(waiting.begin(), waiting.end(),
                        [&](const auto& user) { return user->id == id && user->qpn == user_qpn; });
  };
  auto found = waits(qpn);
  if (found == waiting.end()) found = waits(0);
  if (found == waiting.end()) return;
  // The others of a shared queue with this id may have other memory.
  const bool is_certain =
      (*found)->owner.qpn != 0 ||
      std::count_if(waiting.begin(), waiting.end(), [&](const auto& user) { return user->id == id; }) == 1;
  std::unique_ptr<User> user = std::move(*found);
  waiting.erase(found);
  user->qpn = qpn;
  user->is_complete = true;
  if (user->bytes != nullptr) close(*user, user->arrived);
  if (user->bytes == nullptr) user->arrived = is_certain ? std::min(size, length_of(user->pieces)) : 0;
  may_be_overwritten(*user);
  queue_pairs_[qpn].complete.push_back(std::move(user));
  assert_consistent();
}

std::vector<WithheldBytes::Changed> WithheldBytes::polled(uint32_t qpn, uint64_t id, bool is_receive) {
  std::vector<Changed> changed;
  if (!any() && (is_receive || !any_earlier())) return changed;
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end()) return changed;
  OfQueuePair& queues = found->second;
  const auto let_go = [&](Users& users, const Users::iterator& which) {
    if (std::optional<Changed> one = release(users, which)) changed.push_back(std::move(*one));
  };
  if (is_receive) {
    const auto polled =
        std::find_if(queues.complete.begin(), queues.complete.end(), [&](const auto& user) { return user->id == id; });
    if (polled != queues.complete.end()) let_go(queues.complete, polled);
  } else if (!queues.earlier.take(id, earlier_)) {
    const auto polled = std::find_if(queues.signaled.begin(), queues.signaled.end(),
                                     [&](const Signaled& signaled) { return signaled.id == id; });
    if (polled == queues.signaled.end()) return changed;
    const uint64_t behind = polled->number;
    queues.signaled.erase(queues.signaled.begin(), polled + 1);
    // The completion tells of all earlier requests of the send queue, too.
    while (!queues.results.empty() && queues.results.front()->number < behind)
      let_go(queues.results, queues.results.begin());
    if (queues.results.empty()) {
      for (const Signaled& signaled : queues.signaled) queues.earlier.add(signaled.id, earlier_);
      queues.signaled.clear();
    }
  }
  assert_consistent();
  return changed;
}

// A change of the program counts only if the bytes of the device were there, too. A look has been told.
std::optional<WithheldBytes::Changed> WithheldBytes::release(Users& users, const Users::iterator& which) {
  const std::unique_ptr<User> user = std::move(*which);
  users.erase(which);
  take_out(*user);
  if (!user->changed || user->arrived == 0 || user->closed.was_seen()) return std::nullopt;
  const uint64_t at = *user->changed;
  return Changed{std::move(*user), at};
}

// The caller has taken it out of its list.
void WithheldBytes::take_out(User& user) {
  assert_held(mutex_);
  if (user.bytes != nullptr) put_into_place(user);
  for (const Piece& piece : user.pieces) {
    const auto withheld = withheld_.find(piece.begin);
    if (withheld != withheld_.end() && withheld->second.user == &user) withheld_.erase(withheld);
    auto [other, end] = others_.equal_range(piece.begin);
    while (other != end && other->second.user != &user) ++other;
    if (other != end) others_.erase(other);
  }
  if (std::erase(overwritable_, &user) != 0) any_overwritable_.store(!overwritable_.empty(), std::memory_order_relaxed);
  assert(count_ > 0);
  count_--;
  any_.store(count_ != 0, std::memory_order_relaxed);
}

void WithheldBytes::end(uint32_t qpn, const void* receives) {
  if (!any() && !any_earlier()) return;
  const std::lock_guard lock(mutex_);
  if (const auto queues = queue_pairs_.find(qpn); queues != queue_pairs_.end()) {
    for (const auto& user : queues->second.results) take_out(*user);
    for (const auto& user : queues->second.complete) take_out(*user);
    queues->second.earlier.clear(earlier_);
    queue_pairs_.erase(queues);
  }
  if (const auto queue = receives_.find(receives); queue != receives_.end()) {
    std::erase_if(queue->second, [&](const auto& user) {
      if (user->qpn != qpn) return false;
      take_out(*user);
      return true;
    });
    if (queue->second.empty()) receives_.erase(queue);
  }
  assert_consistent();
}

void WithheldBytes::end(const void* receives) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto queue = receives_.find(receives);
  if (queue == receives_.end()) return;
  for (const auto& user : queue->second) take_out(*user);
  receives_.erase(queue);
  assert_consistent();
}

void WithheldBytes::forget_all() {
  const std::lock_guard lock(mutex_);
  withheld_.clear();
  others_.clear();
  overwritable_.clear();
  any_overwritable_.store(false, std::memory_order_relaxed);
  receives_.clear();
  queue_pairs_.clear();
  count_ = 0;
  earlier_.store(0);
  any_.store(false, std::memory_order_relaxed);
  assert_consistent();
}

}  // namespace dapple::soft::check
