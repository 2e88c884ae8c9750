// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Both ends of a ring: threads that share its writer, and a reader that polls, or sleeps until a writer wakes it.
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>

#include "provider/protocol/wire_counters.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/same_host/ring.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

using namespace dapple::soft;

constexpr uint32_t kMaxWriters = 2;
constexpr Addresses kAddresses[] = {{{1}, {2}}, {{1}, {3}}};

// The packets of a scenario: many short ones, or a few long ones.
struct Shape {
  uint32_t packets;  // of each writer, at most
  size_t shortest, longest;
  uint32_t patience;  // looks in vain before the reader sleeps
  bool naps;          // the reader, so that the ring becomes full
};
constexpr Shape kShapes[] = {{40, 16, 120, 2, false}, {90, 2000, kLongestRingPacket, 3, true}};

void wait_for(int event) {
  pollfd waiting = {event, POLLIN, 0};
  poll(&waiting, 1, -1);
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(event, &count, sizeof count);
}

void notify(int event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof one);
}

struct World {
  explicit World(const Shape& chosen) : shape(chosen) {}

  const Shape shape;
  RingMemory writers_memory, readers_memory;
  RingWriter writer{writers_memory};
  RingReader reader{readers_memory};
  BiasedMutex mutex{LockRank::kRing};  // of the writer
  Counter sent;
  const int reader_event = eventfd(0, 0), writer_event = eventfd(0, 0);
  uint32_t writers = 1;
  uint32_t packets = 0;  // of each writer
};
World* world;

// The packet's first and last bytes name it.
struct Name {
  uint32_t writer, number;
};

size_t size_of(const World& w, Name name) {
  const uint64_t random = (uint64_t{name.number} * 2654435761 + name.writer * 40503) >> 7;
  return w.shape.shortest + random % (w.shape.longest - w.shape.shortest + 1);
}

class Writer {
 public:
  Writer(World& w, uint32_t number) : w_(w), number_(number) {}

  void run() {
    while (next_ < w_.packets) {
      const uint32_t before = next_;
      const bool full = !post();
      if (next_ > before) {
        w_.sent.add_and_fence(next_ - before);
        if (w_.writer.must_wake()) notify(w_.reader_event);
      }
      if (full) await_room();
    }
  }

 private:
  bool put(bool publish_now) {
    const Name name = {number_, next_};
    const size_t size = size_of(w_, name);
    const roce::Acknowledgement acknowledgement = {next_, number_};
    std::byte* room = w_.writer.reserve(size, kAddresses[next_ % 5 == 0], EntryKind::kPacket,
                                        next_ % 3 == 0 ? &acknowledgement : nullptr);
    if (room == nullptr) return false;
    memcpy(room, &name, sizeof name);
    memcpy(room + size - sizeof name, &name, sizeof name);
    if (publish_now) {
      w_.writer.publish_one();
    } else {
      w_.writer.commit();
    }
    next_++;
    return true;
  }

  // False: there is no room.
  bool post() {
    const BiasedLock lock(w_.mutex);
    if (sim_host()->below(8) == 0) w_.writer.reserve(1 + sim_host()->below(100), kAddresses[0]);
    if (sim_host()->below(2) == 0) return put(true);
    bool room = true;
    for (uint64_t left = 1 + sim_host()->below(5); left > 0 && room && next_ < w_.packets; left--) room = put(false);
    w_.writer.publish();
    return room;
  }

  // As the background thread does for all threads of its process.
  void await_room() {
    if (number_ != 0) {
      sim_kernel()->yield();
      return;
    }
    bool full = false;
    {
      const BiasedLock lock(w_.mutex);
      full = w_.writer.wait_for_room();
    }
    if (full) wait_for(w_.writer_event);
  }

  World& w_;
  const uint32_t number_;
  uint32_t next_ = 0;
};

class Reader {
 public:
  explicit Reader(World& w) : w_(w) {}

  void run() {
    uint32_t in_vain = 0;
    for (uint32_t left = w_.writers * w_.packets; left > 0;) {
      if (w_.shape.naps && sim_host()->below(4) == 0) sim_kernel()->sleep(sim_host()->below(60'000));
      const uint32_t got = take();
      left -= got;
      in_vain = got == 0 ? in_vain + 1 : 0;
      if (left == 0 || in_vain == 0) continue;
      if (sim_host()->below(w_.shape.patience) == 0) {
        sleep();
      } else {
        sim_kernel()->yield();
      }
    }
  }

 private:
  uint32_t take() {
    uint32_t got = 0;
    for (const uint64_t most = 1 + sim_host()->below(64); got < most; got++) {
      RingPacket packet;
      if (sim_host()->below(4) == 0) w_.reader.peek(packet);
      const RingReader::Next next = w_.reader.next(packet);
      if (next == RingReader::Next::kBroken) sim_host()->fail("the reader finds a broken ring");
      if (next == RingReader::Next::kNothing) break;
      check(packet);
    }
    if (w_.reader.release()) notify(w_.writer_event);
    return got;
  }

  void check(const RingPacket& packet) {
    Name first, last;
    memcpy(&first, packet.bytes.data(), sizeof first);
    memcpy(&last, packet.bytes.data() + packet.bytes.size() - sizeof last, sizeof last);
    if (first.writer >= w_.writers) sim_host()->fail("the reader finds a packet of no writer");
    const uint32_t expected = received_[first.writer];
    if (first.number != expected)
      sim_host()->fail("packet %u of writer %u comes instead of packet %u", first.number, first.writer, expected);
    received_[first.writer]++;
    sim_host()->note("takes packet %u of writer %u", first.number, first.writer);
    const bool is_good = packet.bytes.size() == size_of(w_, first) && memcmp(&first, &last, sizeof first) == 0 &&
                         memcmp(packet.addresses, &kAddresses[expected % 5 == 0], sizeof(Addresses)) == 0 &&
                         packet.has_acknowledgement == (expected % 3 == 0) &&
                         (!packet.has_acknowledgement || packet.acknowledgement.psn == expected);
    if (!is_good) sim_host()->fail("packet %u of writer %u is damaged", first.number, first.writer);
  }

  // As the background thread.
  void sleep() {
    w_.reader.sleep();
    if (w_.reader.empty()) wait_for(w_.reader_event);
    w_.reader.stay_awake();
  }

  World& w_;
  uint32_t received_[kMaxWriters] = {};
};

void run_ring(size_t shape) {
  world = new World(kShapes[shape]);
  World& w = *world;
  prepare_heavy_barriers();
  OwnedFd file;
  if (w.writers_memory.create(file) != 0 || w.readers_memory.map(file.get()) != 0) sim_host()->fail("no ring");
  w.writers = 1 + static_cast<uint32_t>(sim_host()->below(kMaxWriters));
  w.packets = 1 + static_cast<uint32_t>(sim_host()->below(w.shape.packets));
  const RingMemory::Control& control = w.writers_memory.control();
  sim_host()->name(w.writers_memory.data(), kRingBytes, "ring");
  sim_host()->name(&control.read, 8, "read");
  sim_host()->name(&control.sleeping, 4, "sleeping");
  sim_host()->name(&control.waiting, 4, "waiting");
  sim_host()->name(&w.mutex, sizeof w.mutex, "the writer's mutex");
  sim_host()->spawn(
      "reader", 1, [](void* w_) { Reader(*static_cast<World*>(w_)).run(); }, &w);
  sim_host()->spawn(
      "writer 0", 0, [](void* w_) { Writer(*static_cast<World*>(w_), 0).run(); }, &w);
  if (w.writers > 1)
    sim_host()->spawn(
        "writer 1", 0, [](void* w_) { Writer(*static_cast<World*>(w_), 1).run(); }, &w);
  sim_host()->await_all();
}

}  // namespace

std::vector<Scenario> ring_scenarios() {
  return {{"ring-short", Scenario::Kind::kRules, run_ring, 0}, {"ring-full", Scenario::Kind::kRules, run_ring, 1}};
}

}  // namespace dapple::sim
