// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Lists of requests over a ring: plain Sends, alone and between requests that go another way. The messages arrive once,
// whole and in order. A request that is refused ends its list: those before it are sent, those behind it are not. Runs
// under dapple-run.
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include <array>
#include <atomic>
#include <memory>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/two_processes.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint8_t kAckTimeout = 18;  // 1.07 s
constexpr uint64_t kLists = 4000;
constexpr uint32_t kLongest = 24;  // requests of one of them
constexpr uint32_t kSlot = kBufferSize / (kDepth + 1);

struct Shared {
  Meeting meeting;
  std::atomic<uint64_t> received{0};
  std::atomic<uint64_t> sent{0};
  std::atomic<bool> over{false};
};

Shared* shared;

// One packet each.
constexpr uint32_t kSizes[] = {8, 9, 17, 64, 250, kSlot};
uint32_t size_of(uint64_t message) {
  return kSizes[message % std::size(kSizes)];
}
void fill(char* at, uint64_t message) {
  memset(at, static_cast<int>(message), size_of(message));
  memcpy(at, &message, sizeof message);
}
bool is_message(const char* at, uint64_t message) {
  char expected[kSlot];
  fill(expected, message);
  return memcmp(at, expected, size_of(message)) == 0;
}

bool open(End& end, int number) {
  if (!open_end(end, shared->meeting, number, kAckTimeout, kSlot)) return false;
  for (uint32_t i = 0; number == 1 && i < kDepth; i++) {
    if (post_receive(end, i, i * kSlot, kSlot) != 0) return false;
  }
  return meet(shared->meeting);
}

int receive_all() {
  const auto end = std::make_unique<End>();
  if (!open(*end, 1)) return 1;
  const double last = now() + kPatience;
  for (uint64_t got = 0; !shared->over || got < shared->sent;) {
    ibv_wc completion;
    const int count = ibv_poll_cq(end->cq, 1, &completion);
    if (count < 0 || now() > last) return 2;
    if (count == 0) continue;
    const size_t at = completion.wr_id * kSlot;
    if (completion.status != IBV_WC_SUCCESS || completion.byte_len != size_of(got)) return 3;
    if (!is_message(end->buffer + at, got)) return 4;
    if (post_receive(*end, completion.wr_id, at, kSlot) != 0) return 5;
    shared->received = ++got;
  }
  return 0;
}

// A list of requests from the end's buffer.
struct List {
  std::array<ibv_send_wr, kDepth + 1> requests = {};
  std::array<ibv_sge, kDepth> segments = {};
};

// The messages from `first` on.
void make(List& list, End& end, uint64_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t message = first + i;
    char* at = end.buffer + message % kDepth * kSlot;
    fill(at, message);
    list.segments[i] = {reinterpret_cast<uintptr_t>(at), size_of(message), end.mr->lkey};
    ibv_send_wr& request = list.requests[i] = {};
    request.wr_id = message;
    request.next = i + 1 < count ? &list.requests[i + 1] : nullptr;
    request.sg_list = &list.segments[i];
    request.num_sge = 1;
    request.opcode = message % 7 == 3 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    if (message % 11 == 5) request.send_flags |= IBV_SEND_FENCE;
    if (message % 5 == 1) request.send_flags |= IBV_SEND_INLINE;
    if (message % 3 == 2) request.send_flags |= IBV_SEND_SIGNALED;
  }
  list.requests[count - 1].send_flags |= IBV_SEND_SIGNALED;
}

// Waits for the completions of the first requests of the list, each in its turn. No message waits for a receive then.
bool completes(End& end, const List& list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const ibv_send_wr& request = list.requests[i];
    ibv_wc completion;
    if ((request.send_flags & IBV_SEND_SIGNALED) == 0) continue;
    if (!wait_for(end.cq, completion) || completion.status != IBV_WC_SUCCESS) return false;
    if (completion.wr_id != request.wr_id) return false;
  }
  return await(kPatience, [&] { return shared->received == list.requests[count - 1].wr_id + 1; });
}

bool send_lists(End& end, uint64_t& sent) {
  const auto list = std::make_unique<List>();
  for (uint64_t i = 0; i < kLists; i++) {
    const auto count = static_cast<uint32_t>(1 + i % kLongest);
    make(*list, end, sent, count);
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(end.qp, list->requests.data(), &bad) != 0) return false;
    for (uint32_t j = 0; j < count; j++) list->segments[j] = {};  // the segments are the caller's again
    sent += count;
    if (!completes(end, *list, count)) return false;
  }
  return true;
}

// One request has more segments than the queue pair takes.
bool send_refused(End& end, uint64_t& sent, uint32_t refused) {
  constexpr uint32_t kCount = 6;
  const auto list = std::make_unique<List>();
  make(*list, end, sent, kCount);
  for (ibv_send_wr& request : list->requests) request.send_flags = IBV_SEND_SIGNALED;
  ibv_sge two[2] = {list->segments[refused], list->segments[refused]};
  list->requests[refused].sg_list = two;
  list->requests[refused].num_sge = 2;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(end.qp, list->requests.data(), &bad) != EINVAL || bad != &list->requests[refused]) return false;
  sent += refused;
  return refused == 0 || completes(end, *list, refused);
}

// One request more than the queue takes.
bool send_too_many(End& end, uint64_t& sent) {
  const auto list = std::make_unique<List>();
  make(*list, end, sent, kDepth);
  list->requests[kDepth] = list->requests[kDepth - 1];
  list->requests[kDepth - 1].next = &list->requests[kDepth];
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(end.qp, list->requests.data(), &bad) != ENOMEM || bad != &list->requests[kDepth]) return false;
  sent += kDepth;
  return completes(end, *list, kDepth);
}

int send_all() {
  const auto end = std::make_unique<End>();
  Watcher watcher;
  soft::StatusReply before, status;
  uint64_t sent = 0;
  if (!open(*end, 0) || !watcher.status(before)) {
    failed("no connection");
  } else if (!send_lists(*end, sent)) {
    failed("a list was refused, or a message or its completion is missing");
  } else {
    for (uint32_t refused = 0; refused < 5; refused++) {
      if (!send_refused(*end, sent, refused)) failed("a refused request");
    }
    if (!send_too_many(*end, sent)) failed("a request too many");
    if (!watcher.status(status)) failed("dappled does not answer");
    const uint64_t packets = counter(status, "same_host_sent_packets") - counter(before, "same_host_sent_packets");
    if (packets < sent) failed("the messages have not gone by the ring");
  }
  ibv_send_wr* none = nullptr;
  if (ibv_post_send(end->qp, nullptr, &none) != 0) failed("an empty list");
  shared->sent = sent;
  shared->over = true;
  return static_cast<int>(failures());
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  return run_ends(receive_all, send_all);
}
