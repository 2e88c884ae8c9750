// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A process that publishes keys and queue pairs and ends them again, and threads of a peer that copy to and from its
// memory meanwhile.
#include <string.h>
#include <unistd.h>

#include <memory>

#include "provider/protocol/unix_message.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/placement/publication.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

using namespace dapple::soft;

constexpr Parties kParties = {.target_slot = 6, .peer_slot = 5};
constexpr uint32_t kDomain = 7, kQpn = 0x60011, kPeerQpn = 0x50022;
constexpr uint32_t kCopiers = 2;
constexpr size_t kLongest = 256;
// Numbers by which the threads meet.
constexpr uint32_t kKeyNow = 0, kQpNow = 1, kOver = 2, kContent = 3;

// The n-th key has its own number, in the same place of the table, its own length and its own rights.
uint32_t key_of(uint64_t n) {
  return 0x12345600 + static_cast<uint32_t>(n << 20);
}
uint64_t length_of(uint64_t n) {
  return n % 2 == 0 ? kLongest : kLongest / 4;
}
uint32_t access_of(uint64_t n) {
  return n % 3 == 0 ? uint32_t{roce::kRemoteRead} : roce::kRemoteRead | roce::kRemoteWrite;
}
// The n-th life of the queue pair has its own peer.
uint32_t peer_of(uint64_t n) {
  return kPeerQpn + static_cast<uint32_t>(n);
}

QpDescription queue_pair(uint64_t n, uint32_t access) {
  QpDescription made;
  made.qpn = kQpn;
  made.peer_qpn = peer_of(n);
  made.domain = kDomain;
  made.access = access;
  made.own_address[15] = static_cast<uint8_t>(1 + n);
  made.peer_address[15] = 2;
  return made;
}

struct World {
  Publication publication;
  Placer* placer = new Placer;
  OwnedFd socket;  // the peer's end
  RingMemory ring;
  PeerMemory peer;
  alignas(64) std::byte memory[kLongest] = {};
  uint32_t rounds = 0;
  uint32_t key = 0;  // the ticket of the only one
};
World* world;

void connect(World& w) {
  int ends[2];
  sim_kernel()->pipe(ends);
  OwnedFd file;
  w.placer->socket.reset(ends[0]);
  w.socket.reset(ends[1]);
  w.placer->process = 100;
  bool good = w.ring.create(file) == 0 && w.placer->memory.map(file.get()) == 0 && w.publication.open() &&
              w.publication.ask(*w.placer, kParties);
  if (!good) sim_host()->fail("no publication");
  ProofWords& words = w.ring.control().proof;
  words.right = w.peer.prove(words, kParties, 100, w.publication.hides_secrets());
  good = w.publication.judge(*w.placer) == Right::kGranted;
  std::byte byte;
  Descriptors files;
  good = good && receive_message(w.socket.get(), std::span(&byte, 1), files) == 1 && files.count == 1;
  if (good) w.peer.open(std::move(files.fds[0]), w.ring.control().announcements, kParties.peer_slot, 100);
  if (!good || !w.peer.usable()) sim_host()->fail("the peer may not copy");
}

// --- Keys

void own_keys(World& w) {
  const uint32_t qp = w.publication.publish(queue_pair(0, roce::kRemoteRead | roce::kRemoteWrite));
  for (uint64_t n = 0; n < w.rounds; n++) {
    sim_host()->forbid(w.memory, sizeof w.memory, false);
    const uint32_t ticket = w.publication.publish({.key = key_of(n),
                                                   .domain = kDomain,
                                                   .access = access_of(n),
                                                   .address = reinterpret_cast<uintptr_t>(w.memory),
                                                   .length = length_of(n)});
    if (ticket == 0) sim_host()->fail("a place in the table has leaked");
    sim_host()->set(kKeyNow, n + 1);
    for (uint64_t naps = sim_host()->below(4); naps > 0; naps--) sim_kernel()->yield();
    w.publication.revoke_key(ticket);
    sim_host()->forbid(w.memory, sizeof w.memory, true);
    sim_host()->note("has revoked key %lu", n);
  }
  w.publication.revoke_qp(qp);
  sim_host()->set(kOver, 1);
}

void copy_by_keys(World& w) {
  std::byte bytes[kLongest] = {};
  sim_host()->await(kKeyNow, 1);
  while (sim_host()->get(kOver) == 0) {
    const uint64_t n = sim_host()->get(kKeyNow) - 1;
    const bool writes = sim_host()->below(2) == 0;
    const uint64_t length = 1 + sim_host()->below(kLongest);
    const uint32_t access = writes ? roce::kRemoteWrite : roce::kRemoteRead;
    PeerMemory::Grant grant(w.peer, queue_pair(0, access), {key_of(n), reinterpret_cast<uintptr_t>(w.memory), length});
    if (!grant) continue;
    if (length > length_of(n) || (access_of(n) & access) != access)
      sim_host()->fail("key %lu grants what it does not allow", n);
    sim_host()->note("copies by key %lu", n);
    if (writes) {
      grant.write(reinterpret_cast<uintptr_t>(w.memory), bytes, length);
    } else {
      grant.read(reinterpret_cast<uintptr_t>(w.memory), bytes, length);
    }
  }
}

// --- Queue pairs

// Each life of the queue pair begins with new bytes. It ends by an error, after which the program uses them again.
void own_queue_pairs(World& w) {
  const uint32_t key = w.publication.publish({.key = key_of(0),
                                              .domain = kDomain,
                                              .access = roce::kRemoteRead,
                                              .address = reinterpret_cast<uintptr_t>(w.memory),
                                              .length = kLongest});
  for (uint64_t n = 0; n < w.rounds; n++) {
    std::byte fresh[kLongest], used[kLongest];
    for (size_t i = 0; i < kLongest; i++) fresh[i] = static_cast<std::byte>(n), used[i] = std::byte{0xFF};
    sim_kernel()->copy(w.memory, fresh, kLongest);
    const uint32_t ticket = w.publication.publish(queue_pair(n, roce::kRemoteRead));
    if (ticket == 0) sim_host()->fail("a place in the table has leaked");
    sim_host()->set(kQpNow, n + 1);
    for (uint64_t naps = sim_host()->below(4); naps > 0; naps--) sim_kernel()->yield();
    w.publication.withdraw_qp(ticket);
    sim_kernel()->copy(w.memory, used, kLongest);
    w.publication.revoke_qp(ticket);
    sim_host()->note("has revoked life %lu of the queue pair", n);
  }
  w.publication.revoke_key(key);
  sim_host()->set(kOver, 1);
}

void copy_by_queue_pairs(World& w) {
  sim_host()->await(kQpNow, 1);
  while (sim_host()->get(kOver) == 0) {
    const uint64_t n = sim_host()->get(kQpNow) - 1;
    std::byte bytes[kLongest] = {};
    PeerMemory::Grant grant(w.peer, queue_pair(n, roce::kRemoteRead),
                            {key_of(0), reinterpret_cast<uintptr_t>(w.memory), kLongest});
    if (!grant) continue;
    sim_host()->note("copies by life %lu of the queue pair", n);
    grant.read(reinterpret_cast<uintptr_t>(w.memory), bytes, kLongest);
    if (!grant.queue_pair_lives()) continue;
    for (const std::byte byte : bytes)
      if (byte != static_cast<std::byte>(n)) sim_host()->fail("a copy counts that has other bytes");
  }
}

// --- Errors

// Each life of the queue pair ends by a request that fails. Then the program uses its memory again.
void own_failing_queue_pairs(World& w) {
  const uint32_t key = w.publication.publish({.key = key_of(0),
                                              .domain = kDomain,
                                              .access = roce::kRemoteWrite,
                                              .address = reinterpret_cast<uintptr_t>(w.memory),
                                              .length = kLongest});
  QpEvents events;
  BiasedMutex queue_pairs{LockRank::kQueuePair};
  const BiasedLock lock(queue_pairs);
  for (uint64_t n = 0; n < w.rounds; n++) {
    sim_host()->forbid(w.memory, sizeof w.memory, false);
    const uint32_t ticket = w.publication.publish(queue_pair(n, roce::kRemoteWrite));
    if (ticket == 0) sim_host()->fail("a place in the table has leaked");
    events.shown_as(queue_pairs, &w.publication, ticket);
    sim_host()->set(kQpNow, n + 1);
    for (uint64_t naps = sim_host()->below(4); naps > 0; naps--) sim_kernel()->yield();
    events.sends_fail();
    sim_host()->forbid(w.memory, sizeof w.memory, true);
    sim_host()->note("life %lu of the queue pair has failed", n);
    events.shown_as(queue_pairs, nullptr, 0);
    w.publication.revoke_qp(ticket);
  }
  w.publication.revoke_key(key);
  sim_host()->set(kOver, 1);
}

void write_by_queue_pairs(World& w) {
  const std::byte bytes[kLongest] = {};
  sim_host()->await(kQpNow, 1);
  while (sim_host()->get(kOver) == 0) {
    const uint64_t n = sim_host()->get(kQpNow) - 1;
    PeerMemory::Grant grant(w.peer, queue_pair(n, roce::kRemoteWrite),
                            {key_of(0), reinterpret_cast<uintptr_t>(w.memory), kLongest});
    if (!grant) continue;
    sim_host()->note("writes by life %lu of the queue pair", n);
    grant.write(reinterpret_cast<uintptr_t>(w.memory), bytes, kLongest);
  }
}

struct Roles {
  void (*owner)(World& w);
  void (*copier)(World& w);
};
constexpr Roles kRoles[] = {
    {own_keys, copy_by_keys}, {own_queue_pairs, copy_by_queue_pairs}, {own_failing_queue_pairs, write_by_queue_pairs}};
const Roles* roles;

void run_placement(size_t which) {
  roles = &kRoles[which];
  world = new World;
  World& w = *world;
  prepare_heavy_barriers();
  connect(w);
  w.rounds = 2 + static_cast<uint32_t>(sim_host()->below(6));
  sim_host()->name(w.ring.control().announcements, sizeof(Announcement) * kAnnouncements, "announcements");
  sim_host()->spawn(
      "owner", 0, [](void* w_) { roles->owner(*static_cast<World*>(w_)); }, &w);
  for (uint32_t i = 0; i < kCopiers; i++)
    sim_host()->spawn(
        i == 0 ? "copier 0" : "copier 1", 1, [](void* w_) { roles->copier(*static_cast<World*>(w_)); }, &w);
  sim_host()->await_all();
}

// --- The end of a peer

// The peer is killed during a copy. One thread of the owner waits for the end of the copy, and sees the end of the
// peer. Another one, which read the peer's packets, drops the peer. The last of them deletes it.
void run_peer_end(size_t) {
  world = new World;
  World& w = *world;
  connect(w);
  w.key = w.publication.publish({.key = key_of(0),
                                 .domain = kDomain,
                                 .access = roce::kRemoteRead,
                                 .address = reinterpret_cast<uintptr_t>(w.memory),
                                 .length = kLongest});
  w.publication.publish(queue_pair(0, roce::kRemoteRead));
  const auto* grant = new PeerMemory::Grant(w.peer, queue_pair(0, roce::kRemoteRead),
                                            {key_of(0), reinterpret_cast<uintptr_t>(w.memory), kLongest});
  if (!*grant) sim_host()->fail("the peer may not copy");
  sim_host()->spawn(
      "peer", 1,
      [](void* w_) {
        static_cast<World*>(w_)->socket.reset();
        sim_host()->set(kOver, 1);
      },
      &w);
  sim_host()->spawn(
      "owner", 0, [](void* w_) { static_cast<World*>(w_)->publication.revoke_key(static_cast<World*>(w_)->key); }, &w);
  sim_host()->spawn(
      "reader", 0,
      [](void* w_) {
        sim_host()->await(kOver, 1);
        static_cast<World*>(w_)->publication.forget(*static_cast<World*>(w_)->placer);
        static_cast<World*>(w_)->placer->let_go();
      },
      &w);
  sim_host()->await_all();
}

}  // namespace

std::vector<Scenario> placement_scenarios() {
  return {{"placement-keys", Scenario::Kind::kRules, run_placement, 0},
          {"placement-queue-pairs", Scenario::Kind::kRules, run_placement, 1},
          {"placement-errors", Scenario::Kind::kRules, run_placement, 2},
          {"placement-peer-end", Scenario::Kind::kRules, run_peer_end, 0}};
}

}  // namespace dapple::sim
