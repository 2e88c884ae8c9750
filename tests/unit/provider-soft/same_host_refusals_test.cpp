// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Links between processes of a host that cannot be made, or whose peer is broken or hostile.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "tests/unit/provider-soft/links_rig.hpp"

using namespace dapple::soft;
using namespace dapple::soft::test;

namespace {

void get__nobody_listens__null(void**) {
  Process one(kOneSlot);
  assert_null(one.get(kOtherSlot));
  assert_true(one.transport == Transport::kPeerTakesNone);
}

void get__impossible_slot__null(void**) {
  Process one(kOneSlot);
  assert_null(one.get(kOneSlot));
  assert_true(one.transport == Transport::kSameProcess);
  for (const uint32_t slot : {0U, kMaxSlots, UINT32_MAX}) {
    assert_null(one.get(slot));
    assert_true(one.transport == Transport::kPeerTakesNone);
  }
}

void get__closed__null_for_that_reason(void**) {
  SameHostLinks links;
  links.stay_closed(Transport::kFaults);
  Transport transport = Transport::kNone;
  assert_null(links.get(kOtherSlot, transport));
  assert_true(transport == Transport::kFaults);
}

void get__descriptors_run_out__null_for_that_reason(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  // The socket, and the ring's file.
  for (const int left : {0, 1}) {
    few.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get() + left);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    RingTo* ring = one.get(kOtherSlot);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_null(ring);
    assert_true(one.transport == Transport::kNoDescriptor);
  }
  RingTo* ring = one.get(kOtherSlot);
  assert_non_null(ring);
  assert_true(one.transport == Transport::kSharedMemory);
  one.links.put(ring);
}

// fallocate() would end the program by SIGXFSZ.
void get__files_may_not_be_as_large__null_for_lack_of_memory(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = kRingBytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_null(ring);
  assert_true(one.transport == Transport::kNoMemory);
}

void attend__wrong_greeting__closed(void**) {
  Process one(kOneSlot);
  const OwnedFd file(memfd_create("test", MFD_CLOEXEC));
  OwnedFd ring_file;
  RingMemory ring;
  assert_int_equal(ring.create(ring_file), 0);
  for (int i = 0; i < 6; i++) {
    const OwnedFd peer = connect_to(kOneSlot);
    RingHello hello;
    if (i == 0) hello.magic++;
    if (i == 1) hello.version++;
    if (i == 2) hello.ring_bytes *= 2;
    // i == 3: no file; i == 4: no ring
    if (i == 5) {
      assert_int_equal(send(peer.get(), "hello", 5, 0), 5);
    } else {
      greet(peer, hello, i == 3 ? -1 : i == 4 ? file.get() : ring_file.get());
    }
    one.links.attend();
    Transport why = Transport::kNone;
    assert_true(closed(peer, &why));
    assert_true(why == (i == 1 || i == 2 ? Transport::kOtherRelease : Transport::kPeerTakesNone));
  }
  const OwnedFd peer = connect_to(kOneSlot);
  greet(peer, {}, ring_file.get());
  one.links.attend();
  assert_false(closed(peer));
}

void attend__more_connections_than_slots__the_rest_is_closed(void**) {
  rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit enough = {files.rlim_max, files.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &enough), 0);
  Process one(kOneSlot);
  std::vector<OwnedFd> peers;
  for (uint32_t i = 0; i < kMaxSlots + 20; i++) {
    peers.push_back(connect_to(kOneSlot));
    one.links.attend();
  }
  for (uint32_t i = 0; i < kMaxSlots + 20; i++) assert_int_equal(closed(peers[i]), i >= kMaxSlots);
  peers.clear();
  while (one.has_event()) one.links.attend();
  Process other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

void attend__no_descriptor_left__the_connection_is_closed(void**) {
  Process one(kOneSlot);
  rlimit limit, none_left;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  {
    const OwnedFd peer = connect_to(kOneSlot);
    none_left = limit;
    none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    one.links.attend();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    Transport why = Transport::kNone;
    assert_true(closed(peer, &why));
    assert_true(why == Transport::kPeerNoDescriptor);
    assert_false(one.has_event());
  }
  Process other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
}

// Another thread may take the descriptor that was kept to refuse connections.
void attend__reserve_is_lost_too__sleeps_and_accepts_later(void**) {
  constexpr int kPatience = 5000;
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none_left = limit;
  none_left.rlim_cur = 3;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  one.links.attend();
  const bool spins = one.has_event();
  const bool looks_again = one.has_event(kPatience);
  one.links.attend();
  one.links.attend();
  const bool spins_again = one.has_event();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_false(spins);
  assert_true(looks_again);
  assert_false(spins_again);
  assert_false(other.has_event());
  assert_true(one.has_event(kPatience));
  one.links.attend();
  assert_int_equal(one.receive(), 1);
  // The reserve is there again.
  const OwnedFd late = connect_to(kOneSlot);
  none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  one.links.attend();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_true(closed(late));
  other.links.put(ring);
}

void get__cap_is_reached__null_until_a_ring_is_given_back(void**) {
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot, 2 * RingMemory::kFileBytes - 1);
  one.transports.open(*pages);
  Process third(kThirdSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_non_null(ring);
    assert_int_equal(pages->ring_bytes.value(), RingMemory::kFileBytes);
    assert_null(one.get(kThirdSlot));
    assert_true(one.transport == Transport::kCap);
    other.links.close_in_child();
  }
  while (one.has_event()) one.links.attend();
  // A queue pair still has it.
  assert_null(one.get(kThirdSlot));
  assert_true(one.transport == Transport::kCap);
  one.links.put(ring);
  assert_int_equal(pages->ring_bytes.value(), 0);
  ring = one.get(kThirdSlot);
  assert_non_null(ring);
  one.links.put(ring);
}

// The reason reaches the writer, and its table.
void ring_is_refused__writer_knows_why(void**) {
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot), other(kOtherSlot);
  one.transports.open(*pages);
  RingTo* ring = one.get(kOtherSlot);
  TransportRow row;
  row.slot = kOtherSlot;
  row.transport = Transport::kSharedMemory;
  row.ring = ring->number();
  const uint32_t place = one.transports.take(row);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none_left = limit;
  none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  other.links.attend();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  // Before attend() has seen it.
  RingTo* next = one.get(kOtherSlot);
  assert_true(ring->broken());
  assert_true(ring->end() == Transport::kPeerNoDescriptor);
  assert_ptr_not_equal(next, ring);
  assert_true(pages->rows[0].read(row));
  assert_true(row.transport == Transport::kPeerNoDescriptor);
  one.transports.leave(place);
  one.links.put(ring);
  one.links.put(next);
}

// A peer may send any byte as the reason for its end. The writer takes only a reason that a peer of ours can have.
void peer_sends_impossible_reason__writer_takes_it_for_gone(void**) {
  Process one(kOneSlot);
  const OwnedFd listener = listen_at(kOtherSlot);
  for (const auto reason : {Transport::kSharedMemory, Transport::kCount, static_cast<Transport>(255)}) {
    for (const bool attended : {false, true}) {
      RingTo* ring = one.get(kOtherSlot);
      assert_non_null(ring);
      OwnedFd peer(accept(listener.get(), nullptr, nullptr));
      assert_int_equal(send(peer.get(), &reason, 1, 0), 1);
      if (attended) one.links.attend();
      RingTo* next = one.get(kOtherSlot);
      assert_ptr_not_equal(next, ring);
      assert_true(ring->broken());
      assert_true(ring->end() == Transport::kPeerGone);
      one.links.put(ring);
      peer = OwnedFd(accept(listener.get(), nullptr, nullptr));
      peer.reset();
      one.links.attend();
      one.links.put(next);
    }
  }
}

void receive__overwritten_ring__dropped_and_others_go_on(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  OwnedFd file;
  RingMemory memory;
  assert_int_equal(memory.create(file), 0);
  const OwnedFd hostile = connect_to(kOneSlot);
  greet(hostile, {}, file.get());
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  memset(memory.data(), 0xFF, kRingBytes);
  assert_int_equal(one.receive(), 1);
  Transport why = Transport::kNone;
  assert_true(closed(hostile, &why));
  assert_true(why == Transport::kOverwritten);
  assert_int_equal(one.counters.broken.value(), 1);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(get__nobody_listens__null),
      cmocka_unit_test(get__impossible_slot__null),
      cmocka_unit_test(get__closed__null_for_that_reason),
      cmocka_unit_test(get__descriptors_run_out__null_for_that_reason),
      cmocka_unit_test(get__files_may_not_be_as_large__null_for_lack_of_memory),
      cmocka_unit_test(attend__wrong_greeting__closed),
      cmocka_unit_test(attend__more_connections_than_slots__the_rest_is_closed),
      cmocka_unit_test(attend__no_descriptor_left__the_connection_is_closed),
      cmocka_unit_test(attend__reserve_is_lost_too__sleeps_and_accepts_later),
      cmocka_unit_test(get__cap_is_reached__null_until_a_ring_is_given_back),
      cmocka_unit_test(ring_is_refused__writer_knows_why),
      cmocka_unit_test(peer_sends_impossible_reason__writer_takes_it_for_gone),
      cmocka_unit_test(receive__overwritten_ring__dropped_and_others_go_on),
  };
  return run_in_own_network(tests);
}
