// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tests of the memory model itself: small programs of some threads, whose outcome is possible or impossible on a
// machine that C++20 describes.
#include <linux/membarrier.h>

#include <atomic>
#include <iterator>

#include "tests/sim/threads/host.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
using Value = std::atomic<int>;

// Shared by the threads of a test. All begin as 0.
struct Shared {
  Value x{0}, y{0}, z{0};
  int plain = 0;
  int seen[8] = {};  // by the threads, for the outcome
};
Shared* shared;

void heavy_fence() {
  sim_kernel()->membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// The threads of a test, and the outcome that it is about.
struct Litmus {
  const char* name;
  bool possible;
  void (*threads[4])(Shared& s);
  bool (*outcome)(const Shared& s);
};

template <std::memory_order kStore, std::memory_order kLoad>
void store_x_load_y(Shared& s) {
  s.x.store(1, kStore);
  s.seen[0] = s.y.load(kLoad);
}
template <std::memory_order kStore, std::memory_order kLoad>
void store_y_load_x(Shared& s) {
  s.y.store(1, kStore);
  s.seen[1] = s.x.load(kLoad);
}
// A processor takes its own store out of its buffer, before others see it.
template <std::memory_order kStore>
void store_x_load_x_load_y(Shared& s) {
  s.x.store(1, kStore);
  s.seen[2] = s.x.load(memory_order_seq_cst);
  s.seen[0] = s.y.load(memory_order_seq_cst);
}
bool both_missed(const Shared& s) {
  return s.seen[0] == 0 && s.seen[1] == 0;
}

void store_x_fence_load_y(Shared& s) {
  s.x.store(1, memory_order_relaxed);
  std::atomic_thread_fence(memory_order_seq_cst);
  s.seen[0] = s.y.load(memory_order_relaxed);
}
void store_y_fence_load_x(Shared& s) {
  s.y.store(1, memory_order_relaxed);
  std::atomic_thread_fence(memory_order_seq_cst);
  s.seen[1] = s.x.load(memory_order_relaxed);
}
void store_x_heavy_load_y(Shared& s) {
  s.x.store(1, memory_order_relaxed);
  heavy_fence();
  s.seen[0] = s.y.load(memory_order_relaxed);
}
void store_y_add_load_x(Shared& s) {
  s.y.fetch_add(1, memory_order_acq_rel);
  s.seen[1] = s.x.load(memory_order_relaxed);
}

template <std::memory_order kStore>
void pass_on(Shared& s) {
  s.x.store(1, memory_order_relaxed);
  s.y.store(1, kStore);
}
template <std::memory_order kLoad>
void take(Shared& s) {
  s.seen[0] = s.y.load(kLoad);
  s.seen[1] = s.x.load(memory_order_relaxed);
}
bool flag_without_data(const Shared& s) {
  return s.seen[0] == 1 && s.seen[1] == 0;
}

void pass_on_by_fence(Shared& s) {
  s.x.store(1, memory_order_relaxed);
  std::atomic_thread_fence(memory_order_release);
  s.y.store(1, memory_order_relaxed);
}
void take_by_fence(Shared& s) {
  s.seen[0] = s.y.load(memory_order_relaxed);
  std::atomic_thread_fence(memory_order_acquire);
  s.seen[1] = s.x.load(memory_order_relaxed);
}

// Others change the flag further: 1 becomes 2.
void add_to_flag(Shared& s) {
  int one = 1;
  s.y.compare_exchange_strong(one, 2, memory_order_relaxed);
}
void store_to_flag(Shared& s) {
  if (s.y.load(memory_order_relaxed) == 1) s.y.store(2, memory_order_relaxed);
}
bool changed_flag_without_data(const Shared& s) {
  return s.seen[0] == 2 && s.seen[1] == 0;
}

template <std::memory_order kLoad>
void watch_x_y(Shared& s) {
  s.seen[0] = s.x.load(kLoad);
  s.seen[1] = s.y.load(kLoad);
}
template <std::memory_order kLoad>
void watch_y_x(Shared& s) {
  s.seen[2] = s.y.load(kLoad);
  s.seen[3] = s.x.load(kLoad);
}
template <std::memory_order kStore>
void set_x(Shared& s) {
  s.x.store(1, kStore);
}
template <std::memory_order kStore>
void set_y(Shared& s) {
  s.y.store(1, kStore);
}
void watch_x_fence_y(Shared& s) {
  s.seen[0] = s.x.load(memory_order_relaxed);
  std::atomic_thread_fence(memory_order_seq_cst);
  s.seen[1] = s.y.load(memory_order_relaxed);
}
void watch_y_fence_x(Shared& s) {
  s.seen[2] = s.y.load(memory_order_relaxed);
  std::atomic_thread_fence(memory_order_seq_cst);
  s.seen[3] = s.x.load(memory_order_relaxed);
}
bool different_orders(const Shared& s) {
  return s.seen[0] == 1 && s.seen[1] == 0 && s.seen[2] == 1 && s.seen[3] == 0;
}

void set_x_twice(Shared& s) {
  s.x.store(1, memory_order_relaxed);
  s.x.store(2, memory_order_relaxed);
}
void watch_x_twice(Shared& s) {
  s.seen[0] = s.x.load(memory_order_relaxed);
  s.seen[1] = s.x.load(memory_order_relaxed);
}
bool backwards(const Shared& s) {
  return s.seen[0] > s.seen[1];
}

template <std::memory_order kLoad>
void load_y_store_x(Shared& s) {
  s.seen[0] = s.y.load(kLoad);
  s.x.store(1, memory_order_relaxed);
}
template <std::memory_order kLoad>
void load_x_store_y(Shared& s) {
  s.seen[1] = s.x.load(kLoad);
  s.y.store(1, memory_order_relaxed);
}
bool both_from_the_future(const Shared& s) {
  return s.seen[0] == 1 && s.seen[1] == 1;
}

// x reaches the third thread by way of the second one.
void forward_x_to_y(Shared& s) {
  if (s.x.load(memory_order_acquire) == 1) s.y.store(1, memory_order_release);
}
void set_x_released(Shared& s) {
  s.z.store(1, memory_order_relaxed);
  s.x.store(1, memory_order_release);
}
void watch_y_z(Shared& s) {
  s.seen[0] = s.y.load(memory_order_acquire);
  s.seen[1] = s.z.load(memory_order_relaxed);
}

void add_three(Shared& s) {
  for (int i = 0; i < 3; i++) s.x.fetch_add(1, memory_order_relaxed);
}
bool lost_addition(const Shared& s) {
  return s.x.load(memory_order_relaxed) != 9;
}

const Litmus kTests[] = {
    {"store buffering, relaxed",
     true,
     {store_x_load_y<memory_order_relaxed, memory_order_relaxed>,
      store_y_load_x<memory_order_relaxed, memory_order_relaxed>},
     both_missed},
    {"store buffering, release and acquire",
     true,
     {store_x_load_y<memory_order_release, memory_order_acquire>,
      store_y_load_x<memory_order_release, memory_order_acquire>},
     both_missed},
    {"store buffering, sequentially consistent",
     false,
     {store_x_load_y<memory_order_seq_cst, memory_order_seq_cst>,
      store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    {"store buffering, one store only released",
     true,
     {store_x_load_y<memory_order_release, memory_order_seq_cst>,
      store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    {"store buffering, one load only acquired",
     true,
     {store_x_load_y<memory_order_seq_cst, memory_order_acquire>,
      store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    // C++20 forbids it; arm64 does it.
    {"store buffering, one store relaxed and loaded again",
     true,
     {store_x_load_x_load_y<memory_order_relaxed>, store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    {"store buffering, a store that is loaded again",
     false,
     {store_x_load_x_load_y<memory_order_seq_cst>, store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    {"store buffering, fences", false, {store_x_fence_load_y, store_y_fence_load_x}, both_missed},
    {"store buffering, one fence",
     true,
     {store_x_fence_load_y, store_y_load_x<memory_order_relaxed, memory_order_relaxed>},
     both_missed},
    {"store buffering, a fence and sequentially consistent operations",
     false,
     {store_x_fence_load_y, store_y_load_x<memory_order_seq_cst, memory_order_seq_cst>},
     both_missed},
    {"store buffering, a heavy fence",
     false,
     {store_x_heavy_load_y, store_y_load_x<memory_order_relaxed, memory_order_relaxed>},
     both_missed},
    {"store buffering, an addition is no fence", true, {store_x_fence_load_y, store_y_add_load_x}, both_missed},
    {"message passing, relaxed", true, {pass_on<memory_order_relaxed>, take<memory_order_relaxed>}, flag_without_data},
    {"message passing, release and acquire",
     false,
     {pass_on<memory_order_release>, take<memory_order_acquire>},
     flag_without_data},
    {"message passing, no release",
     true,
     {pass_on<memory_order_relaxed>, take<memory_order_acquire>},
     flag_without_data},
    {"message passing, no acquire",
     true,
     {pass_on<memory_order_release>, take<memory_order_relaxed>},
     flag_without_data},
    {"message passing, fences", false, {pass_on_by_fence, take_by_fence}, flag_without_data},
    {"message passing, one fence", true, {pass_on_by_fence, take<memory_order_relaxed>}, flag_without_data},
    {"message passing by a third thread", false, {set_x_released, forward_x_to_y, watch_y_z}, flag_without_data},
    {"release sequence, a read-modify-write",
     false,
     {pass_on<memory_order_release>, add_to_flag, take<memory_order_acquire>},
     changed_flag_without_data},
    {"release sequence, a plain store ends it",
     true,
     {pass_on<memory_order_release>, store_to_flag, take<memory_order_acquire>},
     changed_flag_without_data},
    {"independent reads, acquire",
     true,
     {set_x<memory_order_release>, set_y<memory_order_release>, watch_x_y<memory_order_acquire>,
      watch_y_x<memory_order_acquire>},
     different_orders},
    {"independent reads, sequentially consistent",
     false,
     {set_x<memory_order_seq_cst>, set_y<memory_order_seq_cst>, watch_x_y<memory_order_seq_cst>,
      watch_y_x<memory_order_seq_cst>},
     different_orders},
    {"independent reads, fences between the reads",
     false,
     {set_x<memory_order_relaxed>, set_y<memory_order_relaxed>, watch_x_fence_y, watch_y_fence_x},
     different_orders},
    {"coherence of two reads", false, {set_x_twice, watch_x_twice}, backwards},
    // C++20 and the machines allow it; the model does not.
    {"load buffering",
     false,
     {load_y_store_x<memory_order_relaxed>, load_x_store_y<memory_order_relaxed>},
     both_from_the_future},
    {"atomic additions", false, {add_three, add_three, add_three}, lost_addition},
};

// Passes a plain number on, so that a missing order is a data race.
template <std::memory_order kStore>
void write_plainly(Shared& s) {
  s.plain = 1;
  s.x.store(1, kStore);
}
template <std::memory_order kLoad>
void read_plainly(Shared& s) {
  if (s.x.load(kLoad) == 1) s.seen[0] = s.plain;
}
// The sequentially consistent fences prevent that both enter, and order nothing else.
void enter_by_fence_x(Shared& s) {
  store_x_fence_load_y(s);
  if (s.seen[0] == 0) s.plain = 1;
}
void enter_by_fence_y(Shared& s) {
  store_y_fence_load_x(s);
  if (s.seen[1] == 0) s.plain = 2;
}

struct Race {
  const char* name;
  bool possible;
  void (*threads[2])(Shared& s);
};
const Race kRaces[] = {
    {"plain data, released and acquired",
     false,
     {write_plainly<memory_order_release>, read_plainly<memory_order_acquire>}},
    {"plain data, not released", true, {write_plainly<memory_order_relaxed>, read_plainly<memory_order_acquire>}},
    {"plain data, not acquired", true, {write_plainly<memory_order_release>, read_plainly<memory_order_relaxed>}},
    {"plain data, one of two enters", false, {enter_by_fence_x, enter_by_fence_y}},
};

void run_threads(void (*const* threads)(Shared&), size_t count) {
  shared = new Shared;
  sim_host()->have_membarrier();
  for (size_t i = 0; i < count && threads[i] != nullptr; i++) {
    sim_host()->spawn(
        "thread", 0, [](void* function) { reinterpret_cast<void (*)(Shared&)>(function)(*shared); },
        reinterpret_cast<void*>(threads[i]));
  }
  sim_host()->await_all();
}

void run_litmus(size_t number) {
  const Litmus& test = kTests[number];
  run_threads(test.threads, 4);
  if (test.outcome(*shared)) sim_host()->fail("has the outcome");
}

void run_race(size_t number) {
  run_threads(kRaces[number].threads, 2);
}

}  // namespace

std::vector<Scenario> litmus_scenarios() {
  constexpr auto kind = [](bool possible) {
    return possible ? Scenario::Kind::kPossible : Scenario::Kind::kImpossible;
  };
  std::vector<Scenario> all;
  for (size_t i = 0; i < std::size(kTests); i++)
    all.push_back({kTests[i].name, kind(kTests[i].possible), run_litmus, i});
  for (size_t i = 0; i < std::size(kRaces); i++) all.push_back({kRaces[i].name, kind(kRaces[i].possible), run_race, i});
  return all;
}

}  // namespace dapple::sim
