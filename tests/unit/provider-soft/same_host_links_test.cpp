// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Rings between processes of a host: their packets, their wakes and their ends.
#include <string.h>

#include <mutex>
#include <vector>

#include "provider/soft/links/ring_post.hpp"
#include "tests/unit/provider-soft/links_rig.hpp"

using namespace dapple::soft;
using namespace dapple::soft::test;

namespace {

void get__twice__one_ring(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_non_null(ring);
  assert_ptr_equal(one.get(kOtherSlot), ring);
  one.links.put(ring);
  one.links.put(ring);
}

void receive__sent_before_the_connection_is_accepted__arrives(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_true(write(ring, 20, 1));
  assert_true(write(ring, 4000, 2));
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 2);
  assert_true(other.sink.good);
  assert_int_equal(other.sink.packets[0].size(), 20);
  assert_true(other.sink.packets[1][3999] == std::byte{2});
  assert_int_equal(other.counters.received_packets.value(), 2);
  assert_int_equal(other.counters.received_bytes.value(), 4020);
  assert_int_equal(other.receive(), 0);
  one.links.put(ring);
}

void published__reader_sleeps__has_an_event(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  other.links.stay_awake();
  assert_true(write(ring, 8, 1));
  ring->published(1, one.counters.sent_packets);
  assert_false(other.has_event());
  other.links.sleep();
  assert_false(other.links.empty());
  assert_int_equal(other.receive(), 1);
  other.links.sleep();
  assert_true(other.links.empty());
  assert_true(write(ring, 8, 2));
  ring->published(1, one.counters.sent_packets);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 1);
  assert_false(other.has_event());
  assert_int_equal(one.counters.sent_packets.value(), 2);
  one.links.put(ring);
}

bool add(RingPost& post, size_t size, uint8_t value) {
  std::byte* to = post.reserve(size);
  if (to == nullptr) return false;
  memset(to, value, size);
  post.commit(nullptr);
  return true;
}

void post__one_packet__arrives_at_once(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  {
    RingPost post(kEnds, *ring, true);
    assert_true(add(post, 20, 1));
    assert_int_equal(other.receive(), 1);
  }
  assert_int_equal(other.receive(), 0);
  one.links.put(ring);
}

void post__list__arrives_together_and_the_first_acknowledges(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  constexpr dapple::roce::Acknowledgement kAcknowledgement = {7, 0};
  {
    RingPost post(kEnds, *ring, false);
    assert_true(post.take_along(kAcknowledgement));
    assert_true(add(post, 20, 1) && add(post, 24, 2) && add(post, 28, 3));
    assert_int_equal(other.receive(), 0);
  }
  assert_int_equal(other.receive(), 3);
  assert_true(other.sink.good);
  assert_true(other.sink.acknowledgements == std::vector<uint32_t>({7, 0, 0}));
  one.links.put(ring);
}

void post__list_that_fills_the_ring__those_that_it_took(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  size_t written = 0;
  {
    RingPost post(kEnds, *ring, false);
    while (add(post, 1000, static_cast<uint8_t>(written))) written++;
  }
  assert_true(ring->full.load());
  assert_true(ring->mutex.try_lock());
  ring->mutex.unlock();
  while (other.receive() != 0) {
  }
  assert_int_equal(other.sink.packets.size(), written);
  for (size_t i = 0; i < written; i++) assert_true(other.sink.packets[i][999] == static_cast<std::byte>(i));
  assert_true(write(ring, 1000, 1));
  one.links.put(ring);
}

// A thread that polls may call attend() after another one has announced that it sleeps.
void attend__greeting_after_sleep__peer_wakes(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  other.links.sleep();
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  assert_false(other.has_event());
  assert_true(write(ring, 8, 1));
  ring->published(1, one.counters.sent_packets);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 1);
  one.links.put(ring);
}

// Otherwise each packet for a thread that polls would wake a sleeping thread that does not want it.
void attend__after_a_wake__peer_wakes_only_if_asked_again(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  for (uint8_t i = 0; i < 6; i++) {
    const bool asked = i % 2 == 0;
    if (asked) other.links.sleep();
    assert_true(write(ring, 8, i));
    ring->published(1, one.counters.sent_packets);
    assert_int_equal(other.has_event(), asked);
    assert_int_equal(other.receive(), 1);
  }
  one.links.put(ring);
}

void get__new_owner_before_the_end_was_seen__its_ring(void**) {
  Process one(kOneSlot);
  RingTo* old = nullptr;
  {
    Process other(kOtherSlot);
    old = one.get(kOtherSlot);
    assert_int_equal(other.receive(), 0);
    other.links.close_in_child();
  }
  Process next(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_ptr_not_equal(ring, old);
  assert_true(write(ring, 8, 1));
  assert_int_equal(next.receive(), 1);
  one.links.put(ring);
  one.links.put(old);
}

void peer_ends__its_last_packets_arrive(void**) {
  Process other(kOtherSlot);
  {
    Process one(kOneSlot);
    RingTo* ring = one.get(kOtherSlot);
    assert_true(write(ring, 8, 1));
    one.links.put(ring);
    one.links.close_in_child();
  }
  assert_int_equal(other.receive(), 1);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 0);
  assert_false(other.has_event());
}

void reader_ends__ring_is_broken_and_a_new_one_is_made(void**) {
  Process one(kOneSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_int_equal(other.receive(), 0);
    other.links.close_in_child();
  }
  assert_false(ring->broken());
  assert_true(one.has_event());
  one.links.attend();
  assert_true(ring->broken());
  assert_true(ring->end() == Transport::kPeerGone);
  assert_false(one.has_event());
  assert_null(one.get(kOtherSlot));
  Process next(kOtherSlot);
  RingTo* fresh = one.get(kOtherSlot);
  assert_non_null(fresh);
  assert_false(fresh->broken());
  assert_true(write(fresh, 8, 1));
  assert_int_equal(next.receive(), 1);
  one.links.put(ring);
  one.links.put(fresh);
}

// Packets for a process never reach the next owner of its slot by the old ring.
void reader_ends_with_packets_unread__next_owner_gets_none(void**) {
  Process one(kOneSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_true(write(ring, 8, 1));
    other.links.attend();
    other.links.close_in_child();
  }
  Process next(kOtherSlot);
  // The writer has not seen the end yet.
  assert_false(ring->broken());
  assert_true(write(ring, 8, 2));
  ring->published(1, one.counters.sent_packets);
  assert_int_equal(next.receive(), 0);
  assert_false(next.has_event());
  while (one.has_event()) one.links.attend();
  assert_true(ring->broken());
  assert_int_equal(next.receive(), 0);
  assert_int_equal(next.counters.received_packets.value(), 0);
  one.links.put(ring);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(get__twice__one_ring),
      cmocka_unit_test(receive__sent_before_the_connection_is_accepted__arrives),
      cmocka_unit_test(published__reader_sleeps__has_an_event),
      cmocka_unit_test(post__one_packet__arrives_at_once),
      cmocka_unit_test(post__list__arrives_together_and_the_first_acknowledges),
      cmocka_unit_test(post__list_that_fills_the_ring__those_that_it_took),
      cmocka_unit_test(attend__greeting_after_sleep__peer_wakes),
      cmocka_unit_test(attend__after_a_wake__peer_wakes_only_if_asked_again),
      cmocka_unit_test(get__new_owner_before_the_end_was_seen__its_ring),
      cmocka_unit_test(peer_ends__its_last_packets_arrive),
      cmocka_unit_test(reader_ends__ring_is_broken_and_a_new_one_is_made),
      cmocka_unit_test(reader_ends_with_packets_unread__next_owner_gets_none),
  };
  return run_in_own_network(tests);
}
