// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/rdma_cm_answers.hpp"

#include <pthread.h>
#include <string.h>

#include <algorithm>

namespace dapple::doors {
namespace {

// Ids that are between an event and the command that follows it.
constexpr uint32_t kMostIds = 64;
constexpr size_t kRoom = 1024;

struct Answers {
  soft::CmChannelName channel;
  uint32_t id;
  uint32_t length;  // 0: none
  alignas(8) uint8_t bytes[kRoom];
};

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit uint32_t age = 0;
constinit Answers kept[kMostIds] = {};

class Locked {
 public:
  Locked() { pthread_mutex_lock(&mutex); }
  ~Locked() { pthread_mutex_unlock(&mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

Answers& place_of(uint32_t id) {
  return kept[id % kMostIds];
}

// The answer at `offset`, and the offset of the next one. False at the end.
bool read(const Answers& answers, uint32_t& offset, soft::CmAnswerAhead& front, const uint8_t*& bytes) {
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
  const Locked locked;
  return age;
}

void keep_answers(const soft::CmChannelName& channel, const soft::CmCommandReply& reply, uint32_t asked_at) {
  const auto bytes = soft::answers_ahead(reply);
  uint32_t id;
  if (reply.length < offsetof(rdma_ucm_event_resp, id) + sizeof id) return;
  memcpy(&id, reply.response + offsetof(rdma_ucm_event_resp, id), sizeof id);
  const Locked locked;
  Answers& answers = place_of(id);
  if (answers.id == id) answers.length = 0;
  if (bytes.empty()) ++age;
  if (bytes.empty() || bytes.size() > kRoom || age != asked_at) return;
  answers.channel = channel;
  answers.id = id;
  answers.length = static_cast<uint32_t>(bytes.size());
  memcpy(answers.bytes, bytes.data(), bytes.size());
}

bool find_answer(const RdmaCmCommand& command, const soft::CmChannelName& channel, soft::CmCommandReply& reply) {
  const Locked locked;
  const Answers& answers = place_of(command.id);
  if (answers.length == 0 || answers.id != command.id || answers.channel.key != channel.key ||
      answers.channel.number != channel.number) {
    return false;
  }
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
  const Locked locked;
  ++age;
  Answers& answers = place_of(id);
  if (answers.id == id) answers.length = 0;
}

void drop_all_answers() {
  const Locked locked;
  ++age;
  for (Answers& answers : kept) answers.length = 0;
}

void forget_answers() {
  // Another thread of the parent may have had the lock.
  mutex = PTHREAD_MUTEX_INITIALIZER;
  drop_all_answers();
}

}  // namespace dapple::doors
