// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_FAULTS=order=weak, which the environment has (CMakeLists.txt): litmus tests. Each outcome that RDMA hardware
// may have, and the device has only with this fault, comes after some rounds. No outcome comes that a transport rules
// out.
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "provider/member/daemon_link.hpp"
#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/native/verbs/weak_rig.hpp"

using namespace dapple::tests;

namespace {

// A busy machine stops the program at the wrong moments in most rounds.
constexpr int kMaxRounds = 4000;
constexpr int kSeen = 2;
constexpr int kRoundsWithout = 30;

constexpr size_t kLong = 8 * 1024;  // eight packets
constexpr unsigned kFence = IBV_SEND_FENCE;

// Two values that follow each other are different.
char old_value = 0, new_value = 0;

void next_values() {
  old_value = new_value;
  new_value = static_cast<char>(new_value % 100 + 1);
}

char* theirs() {
  return weak_stage->reached;
}

char seen_at(size_t place) {
  return __atomic_load_n(theirs() + place, __ATOMIC_ACQUIRE);
}

void set(char* bytes, size_t size, char value) {
  memset(bytes, value, size);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool is_mixed(const char* bytes, size_t size) {
  for (size_t i = 1; i < size; i++) {
    if (bytes[i] != bytes[0]) return true;
  }
  return false;
}

// Up to 400 us, another time in each round.
void wait_a_little() {
  static unsigned round = 0;
  const double until = now() + 20e-6 * (round++ % 20);
  while (now() < until) {
  }
}

void await_byte(size_t place, char value) {
  for (const double end = now() + kPatience; seen_at(place) != value;) {
    if (now() < end) continue;
    return failed("a Write that never becomes visible");
  }
}

// --- The bytes of a request are fetched late. Each test returns true if its outcome has come.

bool a_write_has_bytes_from_after_its_post(WeakEnd& end) {
  set(end.mine(), 8, old_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8);
  set(end.mine(), 8, new_value);
  end.complete(1);
  end.make_visible(0);
  return seen_at(0) == new_value;
}

bool a_write_has_bytes_from_before_and_after_a_change(WeakEnd& end) {
  set(end.mine(), kLong, old_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, kLong);
  wait_a_little();
  set(end.mine(), kLong, new_value);
  end.complete(1);
  end.make_visible(0);
  return is_mixed(theirs(), kLong);
}

bool a_write_has_bytes_from_after_its_completion(WeakEnd& end) {
  set(end.mine(), 8, old_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8);
  end.complete(1);
  set(end.mine(), 8, new_value);
  end.make_visible(0);
  return seen_at(0) == new_value;
}

bool an_inline_write_has_bytes_from_after_its_post(WeakEnd& end) {
  set(end.mine(), 8, old_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_INLINE);
  set(end.mine(), 8, new_value);
  end.complete(1);
  end.make_visible(0);
  return seen_at(0) == new_value;
}

// --- Reads are overtaken.

bool read_then_write(WeakEnd& end, unsigned flags) {
  set(theirs(), 8, old_value);
  set(end.mine() + 64, 8, new_value);
  end.post(0, IBV_WR_RDMA_READ, 0, 0, 8);
  end.post(0, IBV_WR_RDMA_WRITE, 64, 0, 8, flags);
  end.complete(2);
  end.make_visible(0);
  if (seen_at(0) != new_value) failed("a lost Write");
  return end.mine()[0] == new_value;
}
bool a_read_has_bytes_of_the_next_write(WeakEnd& end) {
  return read_then_write(end, 0);
}
bool a_read_has_bytes_of_the_next_write_with_a_fence(WeakEnd& end) {
  return read_then_write(end, kFence);
}

bool read_then_write_of_the_result(WeakEnd& end, unsigned flags) {
  set(end.mine(), 8, old_value);
  set(theirs(), 8, new_value);
  end.post(0, IBV_WR_RDMA_READ, 0, 0, 8);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 64, 8, flags);
  end.complete(2);
  end.make_visible(0);
  return seen_at(64) == old_value;
}
bool a_write_lacks_the_result_of_the_read_before(WeakEnd& end) {
  return read_then_write_of_the_result(end, 0);
}
bool a_write_lacks_the_result_of_the_read_before_with_a_fence(WeakEnd& end) {
  return read_then_write_of_the_result(end, kFence);
}

bool a_read_has_bytes_from_before_and_after_a_change(WeakEnd& end) {
  set(theirs(), kLong, old_value);
  end.post(0, IBV_WR_RDMA_READ, 0, 0, kLong);
  wait_a_little();
  set(theirs(), kLong, new_value);
  end.complete(1);
  return is_mixed(end.mine(), kLong);
}

bool a_read_lacks_bytes_of_the_write_before(WeakEnd& end) {
  set(theirs(), 64, old_value);
  set(end.mine() + 64, 64, new_value);
  end.post(0, IBV_WR_RDMA_WRITE, 64, 0, 64);
  end.post(0, IBV_WR_RDMA_READ, 0, 0, 64);
  end.complete(2);
  return end.mine()[0] != new_value || is_mixed(end.mine(), 64);
}

// --- The order in which Writes become visible.

bool last_byte_first(WeakEnd& end, size_t size) {
  set(theirs(), size, old_value);
  set(end.mine(), size, new_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, static_cast<uint32_t>(size));
  await_byte(size - 1, new_value);
  const bool seen = is_mixed(theirs(), size);
  end.complete(1);
  end.make_visible(0);
  if (memcmp(theirs(), end.mine(), size) != 0) failed("wrong bytes");
  return seen;
}
bool the_last_byte_of_a_packet_comes_first(WeakEnd& end) {
  return last_byte_first(end, 64);
}
bool the_last_byte_of_a_long_write_comes_first(WeakEnd& end) {
  return last_byte_first(end, kLong);
}

bool second_write_first(WeakEnd& end, int pair) {
  set(theirs(), 16, old_value);
  set(end.mine(), 16, new_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8);
  end.post(pair, IBV_WR_RDMA_WRITE, 8, 8, 8);
  await_byte(8, new_value);
  const bool seen = seen_at(0) != new_value;
  end.complete(2);
  end.make_visible(0);
  return seen;
}
bool a_write_overtakes_that_of_another_queue_pair(WeakEnd& end) {
  return second_write_first(end, 1);
}
bool a_write_overtakes_that_of_its_queue_pair(WeakEnd& end) {
  return second_write_first(end, 0);
}

// --- What a completion means.

bool a_completed_write_is_not_visible(WeakEnd& end) {
  set(theirs(), 8, old_value);
  set(end.mine(), 8, new_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8);
  end.complete(1);
  const bool seen = seen_at(0) != new_value;
  end.make_visible(0);
  return seen;
}

bool a_write_before_a_completed_atomic_is_not_visible(WeakEnd& end) {
  set(theirs(), 8, old_value);
  set(end.mine(), 8, new_value);
  end.post(0, IBV_WR_RDMA_WRITE, 0, 0, 8);
  end.post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 64, 8);
  end.complete(2);
  return seen_at(0) != new_value;
}

void await_message(uint32_t received) {
  const double until = now() + kPatience;
  while (weak_stage->received == received && now() < until) {
  }
  if (weak_stage->received == received) failed("no message");
}

// The target changes the bytes when it has the message.
bool read_then_message(WeakEnd& end, unsigned flags) {
  set(theirs(), 8, old_value);
  weak_stage->expected = new_value;
  weak_stage->answered = 0;
  const uint32_t received = weak_stage->received;
  end.post(0, IBV_WR_RDMA_READ, 0, 0, 8);
  end.post(0, IBV_WR_SEND, 0, 0, 0, flags);
  end.complete(2);
  await_message(received);
  weak_stage->answered = kWeakBytes - 1;
  return end.mine()[0] == new_value;
}
bool a_read_has_bytes_from_after_the_next_message(WeakEnd& end) {
  return read_then_message(end, 0);
}
bool a_read_has_bytes_from_after_the_next_message_with_a_fence(WeakEnd& end) {
  return read_then_message(end, kFence);
}

// The message leaves when the Write is complete.
bool message_without_bytes(WeakEnd& end, int pair, bool polls, ibv_wr_opcode message) {
  constexpr uint32_t kSize = 64;
  set(theirs(), kSize, old_value);
  set(end.mine(), kSize, new_value);
  weak_stage->expected = new_value;
  weak_stage->compared = kSize;
  const uint32_t received = weak_stage->received, missing = weak_stage->missing;
  const bool is_write = message == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (!is_write) end.post(0, IBV_WR_RDMA_WRITE, 0, 0, kSize);
  if (polls) end.complete(1);
  end.post(pair, message, 0, 0, is_write ? kSize : 0);
  end.complete(is_write || polls ? 1 : 2);
  await_message(received);
  weak_stage->compared = 0;
  end.make_visible(0);
  return weak_stage->missing != missing;
}
bool a_message_of_another_queue_pair_comes_before_a_completed_write(WeakEnd& end) {
  return message_without_bytes(end, 1, true, IBV_WR_SEND);
}
bool a_message_comes_before_the_write(WeakEnd& end) {
  return message_without_bytes(end, 0, false, IBV_WR_SEND);
}
bool immediate_data_comes_before_the_bytes(WeakEnd& end) {
  return message_without_bytes(end, 0, false, IBV_WR_RDMA_WRITE_WITH_IMM);
}

// --- Atomics.

constexpr uint64_t kCpus = uint64_t{1} << 32;

bool an_atomic_loses_a_change_by_the_cpu(WeakEnd& end) {
  auto* word = reinterpret_cast<uint64_t*>(theirs());
  __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
  end.post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8, 0, 1);
  uint64_t added = 0;
  for (const double limit = now() + kPatience; (__atomic_load_n(word, __ATOMIC_SEQ_CST) & 1) == 0; added++) {
    if (now() > limit) break;
    __atomic_fetch_add(word, kCpus, __ATOMIC_SEQ_CST);
  }
  end.complete(1);
  return __atomic_load_n(word, __ATOMIC_SEQ_CST) / kCpus != added;
}

bool an_atomic_loses_another(WeakEnd& end) {
  auto* word = reinterpret_cast<uint64_t*>(theirs());
  auto* originals = reinterpret_cast<uint64_t*>(end.mine());
  __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
  end.post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8, 0, 1);
  end.post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 8, 0, 1);
  end.complete(2);
  for (int pair = 0; pair < kWeakPairs; pair++) end.make_visible(pair);
  return __atomic_load_n(word, __ATOMIC_SEQ_CST) != 2 || originals[0] + originals[1] != 1;
}

// --- The runs.

using Litmus = bool (*)(WeakEnd&);

void expect_soon(const char* outcome, Litmus litmus, WeakEnd& end) {
  if (failures() != 0) return;
  int seen = 0, rounds = 0;
  for (; rounds < kMaxRounds && seen < kSeen && failures() == 0; rounds++) {
    next_values();
    seen += litmus(end) ? 1 : 0;
  }
  printf("  %5d rounds: %s\n", rounds, outcome);
  fflush(stdout);
  if (seen < kSeen) failed("never seen", outcome);
}

void expect_never(const char* outcome, Litmus litmus, WeakEnd& end) {
  for (int rounds = 0; rounds < kRoundsWithout && failures() == 0; rounds++) {
    next_values();
    if (litmus(end)) return failed("seen", outcome);
  }
}

#define SOON(litmus) expect_soon(#litmus, litmus, end)
#define NEVER(litmus) expect_never(#litmus, litmus, end)

// A process with order=weak neither copies into others nor lets them copy.
void expect_no_placement() {
  Watcher watcher;
  dapple::soft::StatusReply status;
  if (!watcher.status(status)) return failed("dappled does not tell its status");
  if (counter(status, "placed_writes") + counter(status, "placed_reads") != 0) failed("a request without packets");
}

void see_the_targets_part(WeakEnd& end) {
  SOON(a_read_has_bytes_of_the_next_write);
  SOON(a_read_has_bytes_from_after_the_next_message);
  SOON(a_read_has_bytes_from_before_and_after_a_change);
  SOON(the_last_byte_of_a_packet_comes_first);
  SOON(the_last_byte_of_a_long_write_comes_first);
  SOON(a_write_overtakes_that_of_another_queue_pair);
  SOON(a_completed_write_is_not_visible);
  SOON(a_message_of_another_queue_pair_comes_before_a_completed_write);
  SOON(an_atomic_loses_a_change_by_the_cpu);
  NEVER(a_read_has_bytes_of_the_next_write_with_a_fence);
  NEVER(a_read_has_bytes_from_after_the_next_message_with_a_fence);
  NEVER(a_write_lacks_the_result_of_the_read_before_with_a_fence);
  NEVER(a_read_lacks_bytes_of_the_write_before);
  NEVER(a_write_overtakes_that_of_its_queue_pair);
  NEVER(a_write_before_a_completed_atomic_is_not_visible);
  NEVER(a_message_comes_before_the_write);
  NEVER(immediate_data_comes_before_the_bytes);
  NEVER(an_atomic_loses_another);
  expect_no_placement();
}

void see_all(WeakEnd& end) {
  SOON(a_write_has_bytes_from_after_its_post);
  SOON(a_write_has_bytes_from_before_and_after_a_change);
  SOON(a_write_lacks_the_result_of_the_read_before);
  NEVER(a_write_has_bytes_from_after_its_completion);
  NEVER(an_inline_write_has_bytes_from_after_its_post);
  see_the_targets_part(end);
}

}  // namespace

int main() {
#ifdef __SANITIZE_THREAD__
  skip_program("the test changes buffers too early on purpose, which ThreadSanitizer reports");
#endif
  weak_stage = prepare_stage<WeakStage>();
  run_weak("by shared memory", see_all);
  run_weak("over UDP", see_all, {.target_off = "DAPPLE_SAME_HOST"});
  run_weak("at the target alone", see_the_targets_part, {.target_alone = true});
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
