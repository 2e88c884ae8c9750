// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/receive_queue.hpp"

#include <errno.h>
#include <pthread.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::roce;

namespace {

const Segment kSegments[] = {{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}};

void take__in_order_with_the_segments_around_the_ring(void**) {
  ReceiveQueue queue;
  assert_int_equal(queue.initialize(3, 2), 0);
  WholeReceiveRequest request;
  assert_false(queue.take(request));
  uint64_t in = 0;
  uint64_t out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 2; ++i, ++in) assert_int_equal(queue.post(in, {kSegments, in % 3}), 0);
    for (int i = 0; i < 2; ++i, ++out) {
      assert_true(queue.take(request));
      assert_int_equal(request.id, out);
      assert_int_equal(request.segment_count, out % 3);
      for (size_t s = 0; s < request.segment_count; ++s)
        assert_int_equal(request.segments[s].address, kSegments[s].address);
    }
  }
}

void peek__the_next_request_stays(void**) {
  ReceiveQueue queue;
  assert_int_equal(queue.initialize(2, 2), 0);
  WholeReceiveRequest request;
  assert_false(queue.peek(request));
  for (uint64_t id = 0; id < 10; ++id) {
    assert_int_equal(queue.next_number(), id);
    assert_int_equal(queue.post(id, {kSegments, 2}), 0);
    assert_true(queue.peek(request));
    assert_int_equal(request.id, id);
    assert_int_equal(request.segment_count, 2);
    assert_int_equal(request.segments[1].length, 20);
    request = {};
    assert_true(queue.take(request));
    assert_int_equal(request.id, id);
  }
  assert_int_equal(queue.post(0, {}), 0);
  queue.clear();
  assert_int_equal(queue.next_number(), 11);
}

void post__full_or_too_many_segments_is_refused(void**) {
  ReceiveQueue queue;
  assert_int_equal(queue.initialize(2, 2), 0);
  assert_int_equal(queue.post(0, kSegments), EINVAL);
  assert_int_equal(queue.post(1, {}), 0);
  assert_int_equal(queue.post(2, {}), 0);
  assert_int_equal(queue.post(3, {}), ENOMEM);
  queue.clear();
  WholeReceiveRequest request;
  assert_false(queue.take(request));
  assert_int_equal(queue.initialize(kMaxRequests + 1, 1), EINVAL);
  assert_int_equal(queue.initialize(1, kMaxSegments + 1), EINVAL);
  ReceiveQueue none;
  assert_int_equal(none.initialize(0, 1), 0);
  assert_int_equal(none.post(0, {}), ENOMEM);
}

void limit__is_noted_once_when_fewer_are_left(void**) {
  ReceiveQueue queue;
  WholeReceiveRequest request;
  assert_int_equal(queue.initialize(8, 1), 0);
  assert_int_equal(queue.set_limit(9), EINVAL);
  for (uint64_t id = 0; id < 4; ++id) assert_int_equal(queue.post(id, {}), 0);
  assert_int_equal(queue.set_limit(3), 0);
  assert_int_equal(queue.limit(), 3);
  assert_true(queue.take(request));
  assert_false(queue.take_limit_notice());
  assert_true(queue.take(request));
  assert_int_equal(queue.limit(), 0);
  assert_true(queue.take_limit_notice());
  assert_false(queue.take_limit_notice());
  assert_true(queue.take(request));
  assert_false(queue.take_limit_notice());
}

void resize__keeps_the_requests_and_refuses_to_lose_any(void**) {
  ReceiveQueue queue;
  WholeReceiveRequest request;
  assert_int_equal(queue.initialize(4, 2), 0);
  assert_int_equal(queue.post(0, {}), 0);
  assert_true(queue.take(request));
  for (uint64_t id = 1; id < 5; ++id) assert_int_equal(queue.post(id, {kSegments, 2}), 0);
  assert_int_equal(queue.resize(3), EINVAL);
  assert_int_equal(queue.resize(6), 0);
  assert_int_equal(queue.depth(), 6);
  assert_int_equal(queue.post(5, {}), 0);
  assert_int_equal(queue.post(6, {}), 0);
  assert_int_equal(queue.post(7, {}), ENOMEM);
  for (uint64_t id = 1; id < 7; ++id) {
    assert_true(queue.take(request));
    assert_int_equal(request.id, id);
    assert_int_equal(request.segment_count, id < 5 ? 2 : 0);
    if (id < 5) assert_int_equal(request.segments[1].lkey, 2);
  }
  assert_int_equal(queue.set_limit(5), 0);
  assert_int_equal(queue.resize(4), EINVAL);
  assert_int_equal(queue.resize(4, 5), EINVAL);
  assert_int_equal(queue.depth(), 6);
  assert_int_equal(queue.limit(), 5);
  assert_int_equal(queue.resize(4, 2), 0);
  assert_int_equal(queue.depth(), 4);
  assert_int_equal(queue.limit(), 2);
}

void* resize_again_and_again(void* argument) {
  auto& queue = *static_cast<ReceiveQueue*>(argument);
  int errors = 0;
  for (int i = 0; i < 2000; ++i) errors |= queue.resize(i % 2 == 0 ? 8 : 4);
  return errors == 0 ? argument : nullptr;
}

// ibv_query_srq() during ibv_modify_srq(). ThreadSanitizer reports it if the depth has no order of its own.
void depth__while_another_thread_resizes__is_one_of_both(void**) {
  ReceiveQueue queue;
  assert_int_equal(queue.initialize(4, 2), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, resize_again_and_again, &queue), 0);
  uint32_t others = 0;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t depth = queue.depth();
    others += depth != 4 && depth != 8 ? 1 : 0;
  }
  void* done = nullptr;
  pthread_join(thread, &done);
  assert_ptr_equal(done, &queue);
  assert_int_equal(others, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__in_order_with_the_segments_around_the_ring),
      cmocka_unit_test(peek__the_next_request_stays),
      cmocka_unit_test(post__full_or_too_many_segments_is_refused),
      cmocka_unit_test(limit__is_noted_once_when_fewer_are_left),
      cmocka_unit_test(depth__while_another_thread_resizes__is_one_of_both),
      cmocka_unit_test(resize__keeps_the_requests_and_refuses_to_lose_any),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
