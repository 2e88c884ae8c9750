// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/completion_queue.hpp"

#include <errno.h>
#include <stdlib.h>

#include <initializer_list>

#include "provider/common/clock.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::roce;

namespace {

Completion numbered(uint64_t id) {
  Completion completion;
  completion.request_id = id;
  return completion;
}

void take__oldest_first_around_the_ring(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(5), 0);
  uint64_t in = 0;
  uint64_t out = 0;
  Completion got[5];
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) queue.complete(numbered(in++));
    assert_int_equal(queue.take(got, 3), 3);
    for (int i = 0; i < 3; ++i) assert_int_equal(got[i].request_id, out++);
    assert_int_equal(queue.take(got, 5), 2);
    for (int i = 0; i < 2; ++i) assert_int_equal(got[i].request_id, out++);
    assert_true(queue.empty());
    assert_int_equal(queue.take(got, 5), 0);
  }
  assert_int_equal(queue.take_notice(), 0);
}

void complete__beyond_the_size_is_an_overrun_once(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(3), 0);
  Completion got[5];
  for (uint64_t id = 0; id < 3; ++id) queue.complete(numbered(id));
  assert_int_equal(queue.take_notice(), 0);
  queue.complete(numbered(3));
  queue.complete(numbered(4));
  assert_int_equal(queue.take_notice(), CompletionQueue::kOverrun);
  assert_int_equal(queue.take(got, 5), 3);
  assert_int_equal(got[2].request_id, 2);
  queue.complete(numbered(5));
  assert_int_equal(queue.take_notice(), 0);
  assert_int_equal(queue.take(got, 5), 1);
}

void forget__drops_one_queue_pair_and_keeps_the_order(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(7), 0);
  Completion got[7];
  for (int round = 0; round < 20; ++round) {
    for (uint64_t id = 0; id < 7; ++id) {
      Completion completion = numbered(id);
      completion.qpn = id % 3 == 1 ? 8 : 9;
      queue.complete(completion);
    }
    queue.forget(7);
    queue.forget(8);
    assert_int_equal(queue.take(got, 7), 5);
    const uint64_t expected[] = {0, 2, 3, 5, 6};
    for (int i = 0; i < 5; ++i) assert_int_equal(got[i].request_id, expected[i]);
    queue.forget(9);
    assert_true(queue.empty());
    // The next round begins at another place of the ring.
    queue.complete(numbered(0));
    assert_int_equal(queue.take(got, 1), 1);
  }
}

void notification__once_for_each_request(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(16), 0);
  queue.complete(numbered(0));
  assert_int_equal(queue.take_notice(), 0);
  queue.request_notification(false);
  assert_int_equal(queue.take_notice(), 0);
  queue.complete(numbered(1));
  queue.complete(numbered(2));
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventDue);
  assert_int_equal(queue.take_notice(), 0);
}

void notification__solicited_only_waits_for_those_and_for_errors(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(16), 0);
  Completion solicited = numbered(1);
  solicited.solicited = true;
  Completion failed = numbered(2);
  failed.status = CompletionStatus::kFlushed;
  for (const Completion& completion : {solicited, failed}) {
    queue.request_notification(true);
    queue.complete(numbered(0));
    assert_int_equal(queue.take_notice(), 0);
    queue.complete(completion);
    assert_int_equal(queue.take_notice(), CompletionQueue::kEventDue);
  }
  queue.request_notification(false);
  queue.request_notification(true);
  queue.complete(numbered(0));
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventDue);
}

void resize__keeps_completions_and_refuses_to_lose_any(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(4), 0);
  Completion got[9];
  queue.complete(numbered(0));
  queue.complete(numbered(1));
  assert_int_equal(queue.take(got, 2), 2);
  for (uint64_t id = 2; id < 6; ++id) queue.complete(numbered(id));
  assert_int_equal(queue.resize(3), EINVAL);
  assert_int_equal(queue.resize(0), EINVAL);
  assert_int_equal(queue.resize(kMaxCompletions + 1), EINVAL);
  assert_int_equal(queue.resize(9), 0);
  for (uint64_t id = 6; id < 11; ++id) queue.complete(numbered(id));
  assert_int_equal(queue.take_notice(), 0);
  assert_int_equal(queue.take(got, 9), 9);
  for (uint64_t i = 0; i < 9; ++i) assert_int_equal(got[i].request_id, i + 2);
}

void initialize__sizes_that_do_not_go(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(0), EINVAL);
  assert_int_equal(queue.initialize(kMaxCompletions + 1), EINVAL);
}

uint32_t completed(CompletionQueue& queue, uint64_t id) {
  queue.complete(numbered(id));
  return queue.take_notice();
}

void moderate__the_event_waits_for_as_many_or_for_the_end(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(64), 0);
  assert_false(queue.moderate(3));
  assert_int_equal(completed(queue, 0), 0);
  queue.request_notification(false);
  assert_int_equal(completed(queue, 1), CompletionQueue::kEventHeld);
  assert_int_equal(completed(queue, 2), 0);
  assert_int_equal(completed(queue, 3), CompletionQueue::kEventDue);
  assert_int_equal(completed(queue, 4), 0);
  assert_false(queue.end_hold());
  // Fewer come before the end of the period.
  queue.request_notification(false);
  assert_int_equal(completed(queue, 5), CompletionQueue::kEventHeld);
  assert_true(queue.end_hold());
  assert_false(queue.end_hold());
  assert_int_equal(completed(queue, 6), 0);
  // A smaller number makes a held event due.
  queue.request_notification(false);
  assert_int_equal(completed(queue, 7), CompletionQueue::kEventHeld);
  assert_int_equal(completed(queue, 8), 0);
  assert_true(queue.moderate(2));
  assert_false(queue.moderate(0));
  queue.request_notification(false);
  assert_int_equal(completed(queue, 9), CompletionQueue::kEventDue);
}

void moderate__counts_only_what_the_request_is_for(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(8), 0);
  queue.moderate(2);
  queue.request_notification(true);
  Completion solicited = numbered(1);
  solicited.solicited = true;
  assert_int_equal(completed(queue, 0), 0);
  queue.complete(solicited);
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventHeld);
  assert_int_equal(completed(queue, 2), 0);
  queue.complete(solicited);
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventDue);
}

void forget__held_completions_do_not_count_any_more(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(64), 0);
  queue.moderate(4);
  const auto of = [](uint32_t qpn, uint64_t id) {
    Completion completion = numbered(id);
    completion.qpn = qpn;
    return completion;
  };
  const auto notice = [&](const Completion& completion) {
    queue.complete(completion);
    return queue.take_notice();
  };
  // One comes before the request.
  assert_int_equal(notice(of(5, 0)), 0);
  queue.request_notification(false);
  assert_int_equal(notice(of(5, 1)), CompletionQueue::kEventHeld);
  assert_int_equal(notice(of(6, 2)), 0);
  assert_int_equal(notice(of(5, 3)), 0);
  queue.forget(5);
  assert_int_equal(queue.count(), 1);
  assert_int_equal(notice(of(6, 4)), 0);
  assert_int_equal(notice(of(6, 5)), 0);
  assert_int_equal(notice(of(6, 6)), CompletionQueue::kEventDue);
  // All are gone when the period ends.
  queue.request_notification(false);
  assert_int_equal(notice(of(5, 7)), CompletionQueue::kEventHeld);
  queue.forget(5);
  assert_false(queue.end_hold());
  assert_int_equal(notice(of(6, 8)), CompletionQueue::kEventHeld);
  assert_true(queue.end_hold());
}

Completion solicited_of(uint32_t qpn, uint64_t id) {
  Completion completion = numbered(id);
  completion.qpn = qpn;
  completion.solicited = true;
  return completion;
}

// Each unsolicited completion before the request for all is not held, and takes no place of one that is.
void forget__a_held_completion_of_another_queue_pair_keeps_its_event(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(64), 0);
  queue.moderate(4);
  queue.request_notification(true);
  queue.complete(solicited_of(5, 0));
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventHeld);
  Completion plain = numbered(1);
  plain.qpn = 6;
  queue.complete(plain);
  queue.request_notification(false);
  queue.complete(plain);
  assert_int_equal(queue.take_notice(), 0);
  queue.forget(6);
  assert_int_equal(queue.count(), 1);
  assert_true(queue.end_hold());
}

void forget__a_held_completion_from_before_the_request_for_all_does_not_count_any_more(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(64), 0);
  queue.moderate(4);
  queue.request_notification(true);
  queue.complete(solicited_of(5, 0));
  queue.complete(solicited_of(6, 1));
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventHeld);
  queue.request_notification(false);
  queue.forget(5);
  // Three are missing.
  assert_int_equal(completed(queue, 2), 0);
  assert_int_equal(completed(queue, 3), 0);
  queue.forget(6);
  assert_int_equal(completed(queue, 4), 0);
  assert_int_equal(completed(queue, 5), CompletionQueue::kEventDue);
  // The next request begins from nothing.
  queue.request_notification(true);
  queue.complete(solicited_of(6, 6));
  assert_int_equal(queue.take_notice(), CompletionQueue::kEventHeld);
  queue.forget(6);
  assert_false(queue.end_hold());
}

// The clock before and after a completion came.
struct Came {
  uint64_t after = 0;
  uint64_t before = 0;
};

Came complete_stamped(CompletionQueue& queue, const Completion& completion) {
  Came came = {.after = dapple::now_ns(kDeviceClock)};
  queue.complete_stamped(completion, {.raw = true, .wall = false});
  came.before = dapple::now_ns(kDeviceClock);
  return came;
}

void stamps__stay_with_their_completions(void**) {
  CompletionQueue queue;
  assert_int_equal(queue.initialize(4), 0);
  assert_int_equal(queue.keep_stamps(), 0);
  Completion got;
  CompletionStamp stamp;
  Came came[32];
  uint64_t in = 0;
  uint64_t out = 0;
  const auto take_next = [&] {
    if (!queue.take_stamped(got, stamp)) return false;
    assert_int_equal(got.request_id, out);
    assert_in_range(stamp.raw, came[out].after, came[out].before);
    assert_int_equal(stamp.wall, 0);
    ++out;
    return true;
  };
  for (int round = 0; round < 5; ++round) {
    for (; queue.count() < 3; ++in) came[in] = complete_stamped(queue, numbered(in));
    if (round == 2) assert_int_equal(queue.resize(9), 0);
    for (int i = 0; i < 2; ++i) assert_true(take_next());
  }
  // One of another queue pair goes, and those behind it move up.
  Completion of_other = numbered(77);
  of_other.qpn = 5;
  complete_stamped(queue, of_other);
  came[in] = complete_stamped(queue, numbered(in));
  queue.forget(5);
  while (take_next()) continue;
  assert_int_equal(out, in + 1);
}

struct Program {
  size_t taken = 0;
  size_t given = 0;
  void* answer = nullptr;  // of the allocator, if not memory
};

void* program_alloc(ibv_pd*, void* context, size_t size, size_t alignment, uint64_t) {
  auto* program = static_cast<Program*>(context);
  if (program->answer != nullptr) return program->answer;
  ++program->taken;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void program_free(ibv_pd*, void* context, void* memory, uint64_t) {
  ++static_cast<Program*>(context)->given;
  free(memory);
}

void initialize__memory_of_the_programs_allocator(void**) {
  Program program;
  const QueueAllocator allocator = {nullptr, program_alloc, program_free, &program};
  {
    CompletionQueue queue;
    assert_int_equal(queue.initialize(4, &allocator), 0);
    assert_int_equal(program.taken, 1);
    queue.complete(numbered(1));
    assert_int_equal(queue.resize(100), 0);
    assert_int_equal(program.taken, 2);
    assert_int_equal(program.given, 1);
    Completion got;
    assert_int_equal(queue.take(&got, 1), 1);
    assert_int_equal(got.request_id, 1);
  }
  assert_int_equal(program.given, 2);
  program.answer = IBV_ALLOCATOR_USE_DEFAULT;
  {
    CompletionQueue queue;
    assert_int_equal(queue.initialize(4, &allocator), 0);
  }
  assert_int_equal(program.given, 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__oldest_first_around_the_ring),
      cmocka_unit_test(complete__beyond_the_size_is_an_overrun_once),
      cmocka_unit_test(forget__drops_one_queue_pair_and_keeps_the_order),
      cmocka_unit_test(notification__once_for_each_request),
      cmocka_unit_test(notification__solicited_only_waits_for_those_and_for_errors),
      cmocka_unit_test(resize__keeps_completions_and_refuses_to_lose_any),
      cmocka_unit_test(initialize__sizes_that_do_not_go),
      cmocka_unit_test(moderate__the_event_waits_for_as_many_or_for_the_end),
      cmocka_unit_test(moderate__counts_only_what_the_request_is_for),
      cmocka_unit_test(forget__held_completions_do_not_count_any_more),
      cmocka_unit_test(forget__a_held_completion_of_another_queue_pair_keeps_its_event),
      cmocka_unit_test(forget__a_held_completion_from_before_the_request_for_all_does_not_count_any_more),
      cmocka_unit_test(stamps__stay_with_their_completions),
      cmocka_unit_test(initialize__memory_of_the_programs_allocator),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
