// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The bytes of two messages by one system call. The sender's bytes change after each fetch, so a test sees which
// message has been fetched when.
#include "provider/soft/transport/fetch.hpp"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/memory/tsan_ignore.hpp"
#include "tests/unit/provider-soft/placement_rig.hpp"

using namespace dapple::soft;
using namespace dapple::tests;
using dapple::roce::Fault;

namespace {

constexpr uint32_t kMessage = 16 * 1024;
constexpr dapple::roce::Accessor kReceiver = {.domain = 3, .qpn = kPeerQpn};
constexpr std::byte kOld{1}, kNew{2};

// A receiver of two messages that lie in the first two quarters of the sender's memory. Its receives are the quarters
// of its own memory, in order.
struct Receiver {
  Rig sender;
  MemoryTable table{1};
  ReceiveQueue receives;
  PlacementCounters counters;
  AheadOfItsPacket ahead;
  QpDescription sending = queue_pair(0);
  uint32_t key = 0;
  alignas(4096) std::byte memory[kSize] = {};

  Receiver() {
    const RegionConfig config = {.domain = kReceiver.domain,
                                 .memory = memory,
                                 .length = kSize,
                                 .iova = reinterpret_cast<uintptr_t>(memory),
                                 .access = dapple::roce::kLocalWrite};
    assert_int_equal(table.add_region(config, key), 0);
    assert_int_equal(receives.initialize(4, 1), 0);
    set(kOld);
  }
  void set(std::byte value) { std::fill_n(sender.memory, kSize, value); }
  void post(uint32_t quarter, uint32_t size = kMessage) {
    const dapple::roce::Segment segment = {reinterpret_cast<uintptr_t>(memory) + quarter * kMessage, size, key};
    assert_int_equal(receives.post(quarter, {&segment, 1}), 0);
  }
  RingReference message(uint32_t quarter) const {
    RingReference made = {};
    made.owner = sender.peer->nonce();
    made.length = kMessage;
    made.packets = kMessage / 4096;
    made.source_count = 1;
    made.sources[0] = {sender.address() + quarter * kMessage, kMessage, kKey};
    return made;
  }
  // The packet with this number: takes a receive and fetches the message into it.
  Fault receive(uint64_t arrival, const RingReference& reference, const RingReference* next,
                dapple::roce::Accessor receiver = kReceiver) {
    dapple::roce::WholeReceiveRequest receive;
    assert_true(receives.take(receive));
    const FetchAhead look = {arrival, next, receiver, receives, table, ahead};
    const FetchedBytes bytes(sender.peer.get(), sending, reference, counters, &look);
    return table.scatter_loan(receiver, {receive.segments, receive.segment_count}, 0, bytes);
  }
  bool quarter_is(uint32_t quarter, std::byte value) const {
    const std::byte* begin = memory + quarter * kMessage;
    return std::all_of(begin, begin + kMessage, [&](std::byte each) { return each == value; });
  }
};

Receiver* receiver = nullptr;

int make_receiver(void**) {
  receiver = new Receiver;
  return 0;
}

int drop_receiver(void**) {
  delete receiver;
  receiver = nullptr;
  return 0;
}

// True if only the library can be in the way of a fetch. Other machines may lack the address of the guard page, and
// ThreadSanitizer has no place for it.
bool must_copy_at_once() {
#if !defined(__x86_64__) || defined(DAPPLE_HAS_TSAN)
  return false;
#endif
  char from = 1, to = 0;
  const iovec local = {&to, 1}, remote = {&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 &&
         process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1;
}

// Posts two receives, and receives the first message, with the second one behind it.
void receive_first() {
  Receiver& r = *receiver;
  const bool copies_once = r.sender.peer->copies_once(kMessage);
  if (!copies_once && !must_copy_at_once()) skip_test("no process copies another one's memory here");
  assert_true(copies_once);
  r.post(0);
  r.post(1);
  const RingReference next = r.message(1);
  assert_true(r.receive(1, r.message(0), &next) == Fault::kNone);
  assert_true(r.quarter_is(0, kOld));
  r.set(kNew);
}

// The packet behind the first one does not get the bytes that were fetched for it.
void expect_fetched_again(uint64_t arrival, const RingReference& reference, dapple::roce::Accessor who = kReceiver) {
  Receiver& r = *receiver;
  assert_true(r.receive(arrival, reference, nullptr, who) == Fault::kNone);
  assert_true(r.quarter_is(1, kNew));
  assert_int_equal(r.counters.fetched_ahead.value(), 0);
}

void copy__a_message_behind_it__is_fetched_too(void**) {
  receive_first();
  Receiver& r = *receiver;
  assert_true(r.quarter_is(1, kOld));
  assert_true(r.receive(2, r.message(1), nullptr) == Fault::kNone);
  assert_true(r.quarter_is(1, kOld));
  assert_int_equal(r.counters.fetched_ahead.value(), 1);
  assert_int_equal(r.counters.fetches.value(), 2);
  assert_int_equal(r.counters.fetched_bytes.value(), 2 * kMessage);
}

void copy__the_receive_was_posted_anew__fetches_again(void**) {
  receive_first();
  receiver->receives.clear();
  receiver->post(1);
  expect_fetched_again(2, receiver->message(1));
}

void copy__another_packet_came__fetches_again(void**) {
  receive_first();
  expect_fetched_again(3, receiver->message(1));
}

void copy__the_sender_changed_the_packet__fetches_again(void**) {
  receive_first();
  expect_fetched_again(2, receiver->message(2));
}

void copy__the_packet_is_for_another_queue_pair__fetches_again(void**) {
  receive_first();
  expect_fetched_again(2, receiver->message(1), {kReceiver.domain, kReceiver.qpn + 1});
}

// The first message arrives, and the receive of the next one stays as it was.
void expect_nothing_ahead(const RingReference& next) {
  Receiver& r = *receiver;
  assert_true(r.receive(1, r.message(0), &next) == Fault::kNone);
  assert_true(r.quarter_is(0, kOld));
  assert_true(r.quarter_is(1, std::byte{0}));
  assert_int_equal(r.ahead.arrival, 0);
}

void copy__no_receive_is_left__fetches_one(void**) {
  receiver->post(0);
  expect_nothing_ahead(receiver->message(1));
}

void copy__the_next_receive_is_too_short__fetches_one(void**) {
  receiver->post(0);
  receiver->post(1, kMessage - 1);
  expect_nothing_ahead(receiver->message(1));
}

void copy__the_next_message_is_of_an_unknown_key__fetches_one(void**) {
  receiver->post(0);
  receiver->post(1);
  RingReference next = receiver->message(1);
  next.sources[0].key++;
  expect_nothing_ahead(next);
}

void copy__the_next_message_is_outside_of_the_region__fetches_one(void**) {
  receiver->post(0);
  receiver->post(1);
  RingReference next = receiver->message(1);
  next.sources[0].address += kSize;
  expect_nothing_ahead(next);
}

void copy__the_next_receive_has_no_region__fetches_one(void**) {
  receiver->post(0);
  receiver->key++;
  receiver->post(1);
  expect_nothing_ahead(receiver->message(1));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(copy__a_message_behind_it__is_fetched_too, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_receive_was_posted_anew__fetches_again, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__another_packet_came__fetches_again, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_sender_changed_the_packet__fetches_again, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_packet_is_for_another_queue_pair__fetches_again, make_receiver,
                                      drop_receiver),
      cmocka_unit_test_setup_teardown(copy__no_receive_is_left__fetches_one, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_next_receive_is_too_short__fetches_one, make_receiver, drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_next_message_is_of_an_unknown_key__fetches_one, make_receiver,
                                      drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_next_message_is_outside_of_the_region__fetches_one, make_receiver,
                                      drop_receiver),
      cmocka_unit_test_setup_teardown(copy__the_next_receive_has_no_region__fetches_one, make_receiver, drop_receiver),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
