// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// How a process of a host proves to another one that it may copy in its memory, and how this right ends.
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "provider/protocol/unix_message.hpp"
#include "tests/unit/provider-soft/links_rig.hpp"

using namespace dapple::soft;
using namespace dapple::soft::test;

namespace {

// A writer without a Process: makes its ring to the reader, which asks it for a proof.
OwnedFd begin_ring(Process& reader, RingMemory& memory) {
  OwnedFd file;
  assert_int_equal(memory.create(file), 0);
  OwnedFd peer = connect_to(kOneSlot);
  RingHello hello;
  hello.slot = kOtherSlot;
  greet(peer, hello, file.get());
  assert_int_equal(reader.receive(), 0);
  return peer;
}

// The steps of a writer that wants to copy in the memory of the reader, which is this process.
void prove(PeerMemory& memory, ProofWords& words, const OwnedFd& socket, const Publication& publication) {
  assert_int_equal(words.asked.load(), 1);
  words.right = memory.prove(words, {kOneSlot, kOtherSlot}, getpid(), publication.hides_secrets());
  const char byte = 0;
  assert_int_equal(send(socket.get(), &byte, 1, 0), 1);
}

// The number of descriptors that have come.
size_t table_of(const OwnedFd& socket) {
  std::byte bytes[16];
  Descriptors files;
  receive_message(socket.get(), bytes, files, MSG_DONTWAIT);
  return files.count;
}

// The reader asks, the writer answers, the reader sends its table, and the writer takes it.
void shake_hands(Process& writer, Process& reader) {
  for (int i = 0; i < 2; i++) {
    assert_int_equal(reader.receive(), 0);
    assert_int_equal(writer.receive(), 0);
  }
}

Right right_in(const SlotTransports& pages) {
  TransportRow row;
  return pages.rows[0].read(row) ? row.right : Right::kNone;
}

// The right of the peer, step by step.
void attend__writer_proves_its_right__gets_the_table(void**) {
  Publication of_one, of_other;
  assert_true(of_one.open() && of_other.open());
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot), other(kOtherSlot);
  one.links.place_by(of_one);
  other.links.place_by(of_other);
  other.transports.open(*pages);
  TransportRow row;
  row.slot = kOneSlot;
  row.transport = Transport::kSharedMemory;
  other.transports.take(row);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(right_in(*pages), Right::kNone);
  assert_int_equal(other.receive(), 0);
  assert_int_equal(right_in(*pages), Right::kAsked);
  assert_int_equal(one.receive(), 0);
  assert_false(ring->peer_memory().usable());
  assert_int_equal(other.receive(), 0);
  assert_int_equal(right_in(*pages), Right::kGranted);
  assert_int_equal(one.receive(), 0);
  assert_true(ring->peer_memory().usable());
  one.links.put(ring);
}

void attend__one_end_places_nothing__right_has_the_reason(void**) {
  for (const bool reader_is_off : {true, false}) {
    Publication publication;
    assert_true(publication.open());
    const auto pages = std::make_unique<SlotTransports>();
    Process one(kOneSlot), other(kOtherSlot);
    (reader_is_off ? one : other).links.place_by(publication);
    other.transports.open(*pages);
    TransportRow row;
    row.slot = kOneSlot;
    row.transport = Transport::kSharedMemory;
    RingTo* ring = one.get(kOtherSlot);
    shake_hands(one, other);
    assert_int_equal(other.receive(), 0);
    // A row that comes later has the right, too.
    other.transports.take(row);
    assert_int_equal(right_in(*pages), reader_is_off ? Right::kOff : Right::kPeerOff);
    assert_false(ring->peer_memory().usable());
    one.links.put(ring);
  }
}

// A writer that cannot read the secret, or says so, or never answers.
void attend__writer_proves_nothing__no_descriptor(void**) {
  Publication publication;
  assert_true(publication.open());
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot);
  one.links.place_by(publication);
  one.transports.open(*pages);
  TransportRow row;
  row.slot = kOtherSlot;
  row.transport = Transport::kSharedMemory;
  one.transports.take(row);
  for (const Right claim : {Right::kNone, Right::kGranted, Right::kRefused, static_cast<Right>(4711)}) {
    RingMemory memory;
    OwnedFd peer = begin_ring(one, memory);
    assert_int_equal(memory.control().proof.asked.load(), 1);
    memory.control().proof.right = claim;
    for (int i = 0; i < 3; i++) {
      const char byte = 0;
      assert_int_equal(send(peer.get(), &byte, 1, 0), 1);
      assert_int_equal(one.receive(), 0);
      assert_int_equal(table_of(peer), 0);
    }
    const Right expected = claim == Right::kNone      ? Right::kAsked
                           : claim == Right::kRefused ? Right::kRefused
                                                      : Right::kNotProved;
    assert_int_equal(right_in(*pages), expected);
    // A proof comes too late after a wrong one.
    if (expected == Right::kNotProved) {
      PeerMemory copying;
      copying.prove(memory.control().proof, {kOneSlot, kOtherSlot}, getpid(), publication.hides_secrets());
      memory.control().proof.right = Right::kGranted;
      const char byte = 0;
      assert_int_equal(send(peer.get(), &byte, 1, 0), 1);
      assert_int_equal(one.receive(), 0);
      assert_int_equal(table_of(peer), 0);
    }
    peer.reset();
    one.links.attend();
    assert_int_equal(right_in(*pages), Right::kNone);
  }
}

// More connections than there are secrets, each of which ends.
void attend__many_writers_never_answer__the_next_one_is_asked(void**) {
  Publication publication;
  assert_true(publication.open());
  Process one(kOneSlot);
  one.links.place_by(publication);
  for (int i = 0; i < 600; i++) {
    OwnedFd file;
    RingMemory memory;
    assert_int_equal(memory.create(file), 0);
    OwnedFd peer = connect_to(kOneSlot);
    greet(peer, {}, file.get());
    assert_int_equal(one.receive(), 0);
    assert_int_equal(memory.control().proof.asked.load(), 1);
    peer.reset();
    one.links.attend();
  }
}

// The peer of such a ring lives, and may be copying.
void receive__overwritten_ring_of_a_peer_that_copies__revoke_waits_for_the_copy(void**) {
  Publication publication;
  assert_true(publication.open());
  Process one(kOneSlot);
  one.links.place_by(publication);
  RingMemory memory;
  OwnedFd peer = begin_ring(one, memory);
  PeerMemory copying;
  prove(copying, memory.control().proof, peer, publication);
  assert_int_equal(one.receive(), 0);
  assert_int_equal(table_of(peer), 1);
  const uint32_t ticket = publication.publish(KeyDescription{.key = 256});
  std::atomic<uint64_t>& word = memory.control().announcements[0].tickets;
  word.store(announced(ticket, 0));
  memset(memory.data(), 0xFF, kRingBytes);
  assert_int_equal(one.receive(), 0);
  Transport why = Transport::kNone;
  assert_true(closed(peer, &why));
  assert_true(why == Transport::kOverwritten);
  std::atomic<bool> revoked{false};
  std::thread revoking([&] {
    publication.revoke_key(ticket);
    revoked = true;
  });
  usleep(100'000);
  const bool too_early = revoked;
  word.store(0);
  revoking.join();
  assert_false(too_early);
  assert_true(one.links.empty());
  peer.reset();
  one.links.attend();
  assert_false(one.has_event());
  assert_false(one.links.any());
}

void reader_refuses_an_overwritten_ring__writer_copies_no_more(void**) {
  Publication of_one, of_other;
  assert_true(of_one.open() && of_other.open());
  Process one(kOneSlot), other(kOtherSlot);
  one.links.place_by(of_one);
  other.links.place_by(of_other);
  RingTo* ring = one.get(kOtherSlot);
  shake_hands(one, other);
  assert_true(ring->peer_memory().usable());
  std::byte* packet = ring->writer().reserve(8, kEnds);
  ring->writer().commit();
  ring->writer().publish();
  reinterpret_cast<RingEntry*>(packet - sizeof(Addresses) - sizeof(RingEntry))->size = 0xFFFF;
  assert_int_equal(other.receive(), 0);
  one.links.attend();
  assert_true(ring->broken());
  assert_false(ring->peer_memory().usable());
  // The connection ends with the ring's last user.
  assert_true(other.links.any());
  one.links.put(ring);
  other.links.attend();
  assert_false(other.links.any());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(attend__writer_proves_its_right__gets_the_table),
      cmocka_unit_test(attend__one_end_places_nothing__right_has_the_reason),
      cmocka_unit_test(attend__writer_proves_nothing__no_descriptor),
      cmocka_unit_test(attend__many_writers_never_answer__the_next_one_is_asked),
      cmocka_unit_test(receive__overwritten_ring_of_a_peer_that_copies__revoke_waits_for_the_copy),
      cmocka_unit_test(reader_refuses_an_overwritten_ring__writer_copies_no_more),
  };
  return run_in_own_network(tests);
}
