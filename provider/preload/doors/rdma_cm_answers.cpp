// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/rdma_cm_answers.hpp"

#include <string.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>

#include "provider/common/mutex.hpp"

namespace dapple::doors {
namespace {

// Ids that are between an event and the command that follows it.
constexpr uint32_t kMaxIds = 64;
constexpr size_t kRoom = 1024;

struct Answers {
  soft::CmChannelName channel;
  uint32_t id;
  uint32_t length;  // 0: none
  alignas(8) uint8_t bytes[kRoom];
};
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kFront = offsetof(Answers, bytes);
static_assert(kFront % kWord == 0 && kRoom % kWord == 0);

// The answers about one id. Writers have the lock. Readers have none: a reader looks afterwards whether a writer was
// there meanwhile.
class Entry {
 public:
  void write(const Answers& answers) {
    const uint32_t before = sequence_.load(std::memory_order_relaxed);
    // The lock keeps other writers away.
    assert(before % 2 == 0 && answers.length <= kRoom);
    sequence_.store(before + 1, std::memory_order_relaxed);
    const auto* from = reinterpret_cast<const uint8_t*>(&answers);
    const size_t size = kFront + soft::cm_aligned(answers.length);
    for (size_t i = 0; i < size / kWord; i++) {
      uint64_t word;
      memcpy(&word, from + i * kWord, kWord);
      // A reader that sees this word sees the odd number, too.
      words_[i].store(word, std::memory_order_release);
    }
    sequence_.store(before + 2, std::memory_order_release);
  }

  // False if there are no answers about this id, or a writer is there.
  bool read(uint32_t id, Answers& answers) const {
    const uint32_t before = sequence_.load(std::memory_order_acquire);
    copy(answers, 0, kFront);
    if (before % 2 != 0 || answers.id != id || answers.length == 0 || answers.length > kRoom) return false;
    copy(answers, kFront, soft::cm_aligned(answers.length));
    return sequence_.load(std::memory_order_relaxed) == before;
  }

  // In a child of fork(): a thread of the parent may have been writing.
  void restart() { sequence_.store(0, std::memory_order_relaxed); }

  // For writers.
  uint32_t id() const {
    Answers answers;
    copy(answers, 0, kFront);
    return answers.id;
  }

 private:
  void copy(Answers& answers, size_t offset, size_t size) const {
    auto* to = reinterpret_cast<uint8_t*>(&answers);
    for (size_t i = offset / kWord; i < (offset + size) / kWord; i++) {
      const uint64_t word = words_[i].load(std::memory_order_acquire);
      memcpy(to + i * kWord, &word, kWord);
    }
  }

  std::atomic<uint32_t> sequence_{0};  // odd while a writer is there
  std::atomic<uint64_t> words_[sizeof(Answers) / kWord] = {};
};

constinit soft::Mutex answers_mutex{soft::LockRank::kAnswersAhead};
constinit uint32_t age = 0;
constinit Entry kept[kMaxIds] = {};

Entry& entry_of(uint32_t id) {
  return kept[id % kMaxIds];
}

void clear(Entry& entry) {
  Answers none;
  none.channel = {};
  none.id = none.length = 0;
  entry.write(none);
}

// The answer at `offset`, and the offset of the next one. False at the end.
bool read(const Answers& answers, uint32_t& offset, soft::CmAnswerAhead& front, const uint8_t*& bytes) {
  assert(offset <= answers.length && answers.length <= kRoom);
  if (answers.length - offset < sizeof front) return false;
  memcpy(&front, answers.bytes + offset, sizeof front);
  offset += sizeof front;
  if (front.length > answers.length - offset) return false;
  bytes = answers.bytes + offset;
  offset += static_cast<uint32_t>(std::min<size_t>(soft::cm_aligned(front.length), answers.length - offset));
  return true;
}

}  // namespace

uint32_t answers_age() {
  const std::lock_guard lock(answers_mutex);
  return age;
}

void keep_answers(const soft::CmChannelName& channel, const soft::CmCommandReply& reply, uint32_t asked_at) {
  const auto bytes = soft::answers_ahead(reply);
  uint32_t id;
  if (reply.length < offsetof(rdma_ucm_event_resp, id) + sizeof id) return;
  memcpy(&id, reply.response + offsetof(rdma_ucm_event_resp, id), sizeof id);
  const std::lock_guard lock(answers_mutex);
  Entry& entry = entry_of(id);
  if (bytes.empty()) ++age;
  if (bytes.empty() || bytes.size() > kRoom || age != asked_at) {
    if (entry.id() == id) clear(entry);
    return;
  }
  Answers answers;
  answers.channel = channel;
  answers.id = id;
  answers.length = static_cast<uint32_t>(bytes.size());
  memcpy(answers.bytes, bytes.data(), bytes.size());
  entry.write(answers);
}

bool find_answer(const RdmaCmCommand& command, const soft::CmChannelName& channel, soft::CmCommandReply& reply) {
  Answers answers;
  if (!entry_of(command.id).read(command.id, answers)) return false;
  if (answers.channel.key != channel.key || answers.channel.number != channel.number) return false;
  soft::CmAnswerAhead front;
  const uint8_t* bytes = nullptr;
  for (uint32_t offset = 0; read(answers, offset, front, bytes);) {
    if (front.id != command.id || front.command != command.header.cmd || front.qp_state != command.qp_state) continue;
    reply.length = std::min<uint32_t>(front.length, command.header.out);
    memcpy(reply.response, bytes, reply.length);
    return true;
  }
  return false;
}

void drop_answers(uint32_t id) {
  const std::lock_guard lock(answers_mutex);
  ++age;
  Entry& entry = entry_of(id);
  if (entry.id() == id) clear(entry);
}

void drop_all_answers() {
  const std::lock_guard lock(answers_mutex);
  ++age;
  for (Entry& entry : kept) clear(entry);
}

void forget_answers() {
  // Another thread of the parent may have had the lock.
  std::construct_at(&answers_mutex, soft::LockRank::kAnswersAhead);
  for (Entry& entry : kept) entry.restart();
  drop_all_answers();
}

}  // namespace dapple::doors
