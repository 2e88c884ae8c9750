// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A device that is not cache-coherent: buffers are maintained, and completions still have the program's wr_id.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/unit/rpma/objects.hpp"

namespace {

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;
constexpr int kQuiet = RPMA_F_COMPLETION_ON_ERROR;

Objects o;

int set_up(void**) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  fake::make_noncoherent();
  o.make();
  o.connect();
  fake::state.posted.clear();
  fake::state.synced.clear();
  return 0;
}

int tear_down(void**) {
  o.free();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  return fake::live() == 0 && fake::state.wrong.empty() ? 0 : -1;
}

const void* context_of(int number) {
  return o.memory + number;
}

void only_synced(bool for_cpu, size_t offset, size_t length) {
  assert_int_equal(fake::state.synced.size(), 1);
  assert_int_equal(fake::state.synced[0].for_cpu, for_cpu);
  assert_ptr_equal(fake::state.synced[0].range.iov_base, o.memory + offset);
  assert_int_equal(fake::state.synced[0].range.iov_len, length);
  fake::state.synced.clear();
}

// The device completes the request posted with this wr_id; the program must see its own.
void completes(uint64_t wr_id, const void* context) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  fake::state.completions.push_back(wc);
  assert_int_equal(rpma_cq_get_wc(o.cq, 1, &wc, nullptr), 0);
  assert_int_equal(wc.wr_id, reinterpret_cast<uintptr_t>(context));
}

void sources_are_cleaned_before_they_are_posted(void**) {
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 8, 16, kOn, context_of(1)), 0);
  only_synced(false, 8, 16);
  completes(only_posted().wr_id, context_of(1));
  assert_int_equal(rpma_send(o.conn, o.mr, 32, 5, kOn, context_of(2)), 0);
  only_synced(false, 32, 5);
  completes(only_posted().wr_id, context_of(2));
  assert_true(fake::state.synced.empty());
}

void sinks_are_maintained_before_and_after(void**) {
  assert_int_equal(rpma_read(o.conn, o.mr, 8, o.remote, 0, 16, kOn, context_of(1)), 0);
  only_synced(true, 8, 16);
  completes(only_posted().wr_id, context_of(1));
  only_synced(true, 8, 16);
  assert_int_equal(rpma_recv(o.conn, o.mr, 64, 7, context_of(2)), 0);
  only_synced(true, 64, 7);
  completes(only_posted().wr_id, context_of(2));
  only_synced(true, 64, 7);
}

void one_completion_retires_those_before_it(void**) {
  uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(
        rpma_read(o.conn, o.mr, static_cast<size_t>(i) * 8, o.remote, 0, 8, i == 2 ? kOn : kQuiet, context_of(i)), 0);
    last = only_posted().wr_id;
  }
  fake::state.synced.clear();
  completes(last, context_of(2));
  assert_int_equal(fake::state.synced.size(), 3);
  for (size_t i = 0; i < 3; ++i) assert_ptr_equal(fake::state.synced[i].range.iov_base, o.memory + i * 8);
}

void a_full_queue_is_refused_and_goes_on_after_a_completion(void**) {
  uint64_t first = 0;
  for (int i = 0; i < 10; ++i) {
    assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, kOn, context_of(i)), 0);
    const uint64_t wr_id = only_posted().wr_id;
    if (i == 0) first = wr_id;
  }
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, kOn, context_of(10)), RPMA_E_PROVIDER);
  completes(first, context_of(0));
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, kOn, context_of(10)), 0);
}

void what_was_not_posted_leaves_no_trace(void**) {
  fake::state.post_error = ENOMEM;
  for (int i = 0; i < 30; ++i) {
    assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, kOn, nullptr), RPMA_E_PROVIDER);
    assert_int_equal(rpma_recv(o.conn, o.mr, 0, 8, nullptr), RPMA_E_PROVIDER);
  }
  fake::state.post_error = 0;
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, kOn, context_of(3)), 0);
  completes(only_posted().wr_id, context_of(3));
}

// Inline data and the data of a flush's Read need no maintenance, but their completions are still distinguished.
void atomic_writes_and_flushes_touch_no_buffer(void**) {
  const char bytes[8] = {};
  assert_int_equal(rpma_atomic_write(o.conn, o.remote, 0, bytes, kOn, context_of(1)), 0);
  const uint64_t write = only_posted().wr_id;
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, context_of(2)), 0);
  completes(write, context_of(1));
  completes(only_posted().wr_id, context_of(2));
  assert_true(fake::state.synced.empty());
}

// Nobody reads the data of a flush's Read, but the emulator would report that nothing has synced it.
void the_data_of_flushes_is_maintained_at_the_end(void**) {
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, context_of(1)), 0);
  const ibv_sge sink = only_posted().segment;
  assert_int_equal(rpma_conn_delete(&o.conn), 0);
  assert_int_equal(fake::state.synced.size(), 1);
  assert_true(fake::state.synced[0].for_cpu);
  assert_int_equal(reinterpret_cast<uintptr_t>(fake::state.synced[0].range.iov_base), sink.addr);
  assert_int_equal(fake::state.synced[0].range.iov_len, sink.length);
}

// The device refuses these requests; the memory need not exist.
void what_is_not_in_the_region_is_not_touched(void**) {
  constexpr size_t kFar = size_t{1} << 30;
  assert_int_equal(rpma_send(o.conn, o.mr, kFar, 64, kOn, context_of(1)), 0);
  completes(only_posted().wr_id, context_of(1));
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, SIZE_MAX - 7, 8, kOn, context_of(2)), 0);
  completes(only_posted().wr_id, context_of(2));
  assert_int_equal(rpma_read(o.conn, o.mr, 8, o.remote, 0, kFar, kOn, context_of(3)), 0);
  completes(only_posted().wr_id, context_of(3));
  assert_int_equal(rpma_recv(o.conn, o.mr, kFar, 8, context_of(4)), 0);
  completes(only_posted().wr_id, context_of(4));
  assert_true(fake::state.synced.empty());
}

void what_failed_is_not_touched_at_its_completion(void**) {
  ibv_wc wc{};
  assert_int_equal(rpma_read(o.conn, o.mr, 0, o.remote, 0, 8, kQuiet, context_of(1)), 0);
  fake::state.posted.clear();
  assert_int_equal(rpma_read(o.conn, o.mr, 8, o.remote, 0, 8, kOn, context_of(2)), 0);
  fake::state.synced.clear();
  wc.status = IBV_WC_WR_FLUSH_ERR;
  wc.wr_id = only_posted().wr_id;
  fake::state.completions.push_back(wc);
  assert_int_equal(rpma_cq_get_wc(o.cq, 1, &wc, nullptr), 0);
  only_synced(true, 0, 8);  // the one before has succeeded
  assert_int_equal(rpma_recv(o.conn, o.mr, 64, 7, context_of(3)), 0);
  fake::state.synced.clear();
  wc.wr_id = only_posted().wr_id;
  fake::state.completions.push_back(wc);
  assert_int_equal(rpma_cq_get_wc(o.cq, 1, &wc, nullptr), 0);
  assert_true(fake::state.synced.empty());
}

// The slots are released in the order of the completions, whichever thread polls.
void two_threads_poll_one_queue(void**) {
  uint64_t ids[2];
  ibv_wc mine{};
  ibv_wc theirs{};
  std::thread other;
  std::atomic<bool> done = false;
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(rpma_read(o.conn, o.mr, static_cast<size_t>(i) * 8, o.remote, 0, 8, kOn, context_of(i)), 0);
    ids[i] = only_posted().wr_id;
  }
  ibv_wc wc{};
  wc.wr_id = ids[0];
  fake::state.completions.push_back(wc);
  fake::state.after_poll = [&] {
    wc.wr_id = ids[1];
    fake::state.completions.push_back(wc);
    other = std::thread([&] {
      rpma_cq_get_wc(o.cq, 1, &theirs, nullptr);
      done = true;
    });
    for (int patience = 100; !done && patience > 0; --patience) usleep(1000);
    // That would release the slot of the first completion, too, and another request would get it.
    assert_false(done);
  };
  fake::state.synced.clear();
  assert_int_equal(rpma_cq_get_wc(o.cq, 1, &mine, nullptr), 0);
  other.join();
  assert_int_equal(mine.wr_id, reinterpret_cast<uintptr_t>(context_of(0)));
  assert_int_equal(theirs.wr_id, reinterpret_cast<uintptr_t>(context_of(1)));
  assert_int_equal(fake::state.synced.size(), 2);
  assert_ptr_equal(fake::state.synced[0].range.iov_base, o.memory);
  assert_ptr_equal(fake::state.synced[1].range.iov_base, o.memory + 8);
}

// A shared queue without a CQ of its own. The connection uses it from now on.
rpma_srq* connect_to_shared_queue() {
  rpma_srq* srq = nullptr;
  assert_int_equal(rpma_conn_delete(&o.conn), 0);
  assert_int_equal(rpma_srq_cfg_set_rcq_size(o.srq_cfg, 0), 0);
  assert_int_equal(rpma_srq_new(o.peer, o.srq_cfg, &srq), 0);
  assert_int_equal(rpma_conn_cfg_set_srq(o.cfg, srq), 0);
  o.connect(o.cfg);
  return srq;
}

// Posts a receive and puts its completion on the CQ. Returns its wr_id, which is the address of its slot.
uint64_t complete_receive(rpma_srq* srq) {
  ibv_wc wc{};
  assert_int_equal(rpma_srq_recv(srq, o.mr, 0, 8, nullptr), 0);
  wc.wr_id = only_posted().wr_id;
  fake::state.completions.push_back(wc);
  return wc.wr_id;
}

// A shared queue outlives its connections, and needs the slots of receives that nobody has taken; but not the buffers,
// which may be gone.
void completions_that_nobody_took_are_taken_at_the_end(void**) {
  rpma_srq* srq = connect_to_shared_queue();
  complete_receive(srq);
  fake::state.synced.clear();
  assert_int_equal(rpma_conn_delete(&o.conn), 0);
  assert_int_equal(fake::state.synced.size(), 1);  // the data of flushes
  assert_ptr_not_equal(fake::state.synced[0].range.iov_base, o.memory);
  assert_int_equal(rpma_srq_delete(&srq), 0);
}

void slots_come_back_from_a_driver_that_drops_completions(void**) {
  rpma_srq* srq = connect_to_shared_queue();
  const uint64_t slot = complete_receive(srq);
  fake::state.drops_completions = true;
  assert_int_equal(rpma_conn_delete(&o.conn), 0);
  assert_int_equal(rpma_srq_recv(srq, o.mr, 0, 8, nullptr), 0);
  assert_int_equal(only_posted().wr_id, slot);  // the same one again
  assert_int_equal(rpma_srq_delete(&srq), 0);
}

int set_up_nothing(void**) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  return 0;
}

void such_a_device_is_refused_unless_somebody_said_so(void**) {
  fake::make_noncoherent();
  fake::state.attr.certainty = DAPPLEDV_CERTAINTY_FIRMWARE;
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), RPMA_E_PROVIDER);
  fake::change_device();
  fake::state.attr.coherence = DAPPLEDV_COHERENCE_BOUNCED;
  fake::state.attr.sync_supported = 0;
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), RPMA_E_PROVIDER);
  fake::change_device();
  fake::state.attr.coherence = DAPPLEDV_COHERENCE_UNKNOWN;
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), RPMA_E_PROVIDER);
  assert_null(o.peer);
  fake::change_device();
  fake::state.attr.sync_supported = 1;
  assert_int_equal(rpma_peer_new(fake::context(), &o.peer), 0);
}

}  // namespace

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main() {
  const CMUnitTest tests[] = {
      TEST(sources_are_cleaned_before_they_are_posted),
      TEST(sinks_are_maintained_before_and_after),
      TEST(one_completion_retires_those_before_it),
      TEST(a_full_queue_is_refused_and_goes_on_after_a_completion),
      TEST(what_was_not_posted_leaves_no_trace),
      TEST(atomic_writes_and_flushes_touch_no_buffer),
      TEST(the_data_of_flushes_is_maintained_at_the_end),
      TEST(two_threads_poll_one_queue),
      TEST(what_is_not_in_the_region_is_not_touched),
      TEST(what_failed_is_not_touched_at_its_completion),
      TEST(completions_that_nobody_took_are_taken_at_the_end),
      TEST(slots_come_back_from_a_driver_that_drops_completions),
      cmocka_unit_test_setup_teardown(such_a_device_is_refused_unless_somebody_said_so, set_up_nothing, tear_down),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
