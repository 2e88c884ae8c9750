// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Thousands of regions and windows, also during syncs, and after syncs that a signal handler has left.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "coherence/cache.hpp"
#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/core/memory/sync.hpp"

using namespace dapple::udapl;

namespace {

alignas(4096) char memory[4096];

struct Triplet {
  uint32_t lmr_context;
  uint64_t virtual_address;
  uint64_t segment_length;
};

struct Fixture {
  fake_device::Ia ia{(fake_device::reset(), false)};
  std::vector<Rmr*> windows;

  Lmr* region(uint32_t marks = 0, char* at = memory) {
    std::unique_lock control(control_mutex());
    return Lmr::create(ia.get(), ia.pz(),
                       {.address = at, .length = sizeof memory, .privileges = kAllPrivileges | marks}, control)
        .value();
  }
  void make_windows(uint32_t count) {
    std::lock_guard guard(control_mutex());
    for (uint32_t i = 0; i < count; ++i) windows.push_back(Rmr::create(ia.get(), ia.pz(), true).value());
  }
  uint32_t bind(Rmr& window, Ep& ep, Lmr& lmr) {
    const auto bound = window.bind(ep, {.target = {.lmr = &lmr,
                                                   .lmr_context = lmr.context(),
                                                   .address = reinterpret_cast<uint64_t>(memory),
                                                   .length = sizeof memory,
                                                   .privileges = kRemoteWrite},
                                        .cookie = 0,
                                        .flags = 0});
    CHECK(bound.has_value());
    Event event;
    CHECK(take_event(*ep.evds().request, event).has_value());
    return bound ? *bound : 0;
  }
};

// During a sync of a region, look-ups and other registrations proceed; only freeing that region waits.
void lmr_sync__holds_up_nobody_but_the_end_of_the_region() {
  static std::atomic<bool> inside;
  static std::atomic<bool> go_on;
  inside = go_on = false;
  Fixture f;
  Lmr* lmr = f.region(kNoncoherent);
  const Triplet segment{lmr->context(), reinterpret_cast<uint64_t>(memory), sizeof memory};
  const SyncFunction slow = [](const dappledv_region_attr*, const iovec*, size_t count) {
    if (count == 0) return 0;
    inside = true;
    while (!go_on) std::this_thread::yield();
    return 0;
  };
  const SyncFunction nothing = [](const dappledv_region_attr*, const iovec*, size_t) { return 0; };
  std::thread syncer([&] { CHECK(sync_segments(f.ia.get(), &segment, 1, slow).has_value()); });
  while (!inside) std::this_thread::yield();
  Lmr* other = f.region();
  CHECK(sync_segments(f.ia.get(), &segment, 1, nothing).has_value());
  std::atomic<bool> freed = false;
  std::thread freer([&] {
    std::lock_guard guard(control_mutex());
    CHECK(Lmr::free(*lmr).has_value());
    freed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!freed);
  go_on = true;
  syncer.join();
  freer.join();
  CHECK(!sync_segments(f.ia.get(), &segment, 1, nothing).has_value());
  std::lock_guard guard(control_mutex());
  CHECK(Lmr::free(*other).has_value());
}

// ---- A signal handler that leaves a sync by longjmp() ----

thread_local sigjmp_buf way_out;
thread_local void* faulted;

void leave_at_fault(int, siginfo_t* info, void*) {
  faulted = info->si_addr;
  siglongjmp(way_out, 1);
}

void leave_at_faults(int flags) {
  struct sigaction action {};
  action.sa_sigaction = leave_at_fault;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(SIGSEGV, &action, nullptr);
  ::alarm(60);  // the end of a hang
}

// Reads each line, as maintenance does.
int read_lines(const dappledv_region_attr*, const iovec* ranges, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t at = 0; at < ranges[i].iov_len; at += 64) {
      (void)static_cast<const volatile char*>(ranges[i].iov_base)[at];
    }
  }
  return 0;
}

// True if the sync faulted, and its handler has left it.
template <class Segment>
bool sync_faults(Ia& ia, const Segment* segments, uint64_t count) {
  faulted = nullptr;
  if (sigsetjmp(way_out, 1) == 0) (void)sync_segments(ia, segments, count, read_lines);
  return faulted != nullptr;
}

// Accesses of the memory fault from now on. The place stays taken: what is mapped next must not come to lie there.
void forbid(void* start, size_t size) {
  CHECK_EQUAL(mprotect(start, size, PROT_NONE), 0);
}

// A page of its own, which the test forbids.
struct Page {
  static constexpr size_t kSize = 4096;
  char* memory = static_cast<char*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void forbid_it() const { forbid(memory, kSize); }
};

void free_region(Lmr& lmr) {
  std::unique_lock control(control_mutex());
  CHECK(Lmr::free(lmr, control).has_value());
}

void lmr_free__after_a_longjmp_out_of_a_sync() {
  Fixture f;
  leave_at_faults(0);
  const Page page;
  Lmr& gone = *f.region(kNoncoherent, page.memory);
  Lmr& beside = *f.region(kNoncoherent);
  const Triplet segments[] = {{beside.context(), reinterpret_cast<uint64_t>(memory), 64},
                              {gone.context(), reinterpret_cast<uint64_t>(page.memory), Page::kSize},
                              {gone.context(), reinterpret_cast<uint64_t>(page.memory), 64}};
  page.forbid_it();
  for (int i = 0; i < 3; ++i) CHECK(sync_faults(f.ia.get(), segments, std::size(segments)));
  CHECK_EQUAL(faulted, static_cast<void*>(page.memory));
  CHECK(sync_segments(f.ia.get(), segments, 1, read_lines).has_value());
  free_region(gone);
  free_region(beside);
}

// The thread that left the sync lives on, and has its signal stack elsewhere; another thread frees the region.
void lmr_free__after_another_thread_left_a_sync() {
  Fixture f;
  leave_at_faults(SA_ONSTACK);
  const Page page;
  Lmr& gone = *f.region(kNoncoherent, page.memory);
  const Triplet segment{gone.context(), reinterpret_cast<uint64_t>(page.memory), 64};
  page.forbid_it();
  std::atomic<bool> left = false;
  std::atomic<bool> end = false;
  std::thread syncer([&] {
    std::vector<char> own(size_t{64} << 10);
    stack_t stack{};
    stack.ss_sp = own.data();
    stack.ss_size = own.size();
    sigaltstack(&stack, nullptr);
    CHECK(sync_faults(f.ia.get(), &segment, 1));
    left = true;
    while (!end) std::this_thread::yield();
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  });
  while (!left) std::this_thread::yield();
  free_region(gone);
  end = true;
  syncer.join();
}

// The fault is in the list of segments: on a coherent device, too, no lock stays behind.
void lmr_free__after_a_longjmp_out_of_the_look_at_a_list() {
  for (const uint32_t marks : {uint32_t{0}, uint32_t{kNoncoherent}}) {
    Fixture f;
    leave_at_faults(0);
    Lmr& lmr = *f.region(marks);
    const Triplet good{lmr.context(), reinterpret_cast<uint64_t>(memory), 64};
    // The list ends in front of the forbidden page, or reaches into it; its first part is long enough for several
    // blocks.
    const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t many = size / sizeof(Triplet);
    auto* list =
        static_cast<Triplet*>(mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* const end = reinterpret_cast<char*>(list) + size;
    forbid(end, size);
    for (size_t i = 0; i < many; ++i) list[i] = good;
    CHECK(!sync_faults(f.ia.get(), list, many));
    for (const size_t more : {size_t{1}, size_t{2}, size_t{65}, size_t{100'000}, SIZE_MAX / sizeof(Triplet) - many}) {
      CHECK(sync_faults(f.ia.get(), list, many + more));
    }
    CHECK(sync_faults(f.ia.get(), reinterpret_cast<const Triplet*>(end), 1));
    // A segment of which a part is missing.
    CHECK(sync_faults(f.ia.get(), reinterpret_cast<const Triplet*>(end - 8), 1));
    CHECK(sync_segments(f.ia.get(), &good, 1, read_lines).has_value());
    munmap(list, 2 * size);
    free_region(lmr);
  }
}

// A handler that syncs, and returns, takes nothing from the sync that it interrupts.
void lmr_free__waits_for_a_sync_that_a_handler_interrupted() {
  static Fixture* fixture;
  static const Triplet* inner;
  static std::atomic<bool> interrupted;
  static std::atomic<bool> go_on;
  Fixture f;
  fixture = &f;
  interrupted = go_on = false;
  Lmr& lmr = *f.region(kNoncoherent);
  const Triplet segment{lmr.context(), reinterpret_cast<uint64_t>(memory), 64};
  inner = &segment;
  ::signal(SIGUSR1, [](int) { CHECK(sync_segments(fixture->ia.get(), inner, 1, read_lines).has_value()); });
  std::thread syncer([&] {
    const SyncFunction slow = [](const dappledv_region_attr*, const iovec*, size_t count) {
      if (count == 0) return 0;
      ::raise(SIGUSR1);
      interrupted = true;
      while (!go_on) std::this_thread::yield();
      return 0;
    };
    CHECK(sync_segments(f.ia.get(), &segment, 1, slow).has_value());
  });
  while (!interrupted) std::this_thread::yield();
  std::atomic<bool> freed = false;
  std::thread freer([&] {
    free_region(lmr);
    freed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!freed);
  go_on = true;
  syncer.join();
  freer.join();
}

void window_table__finds_each_of_many() {
  Fixture f;
  constexpr uint32_t kMany = 500;
  Ep& ep = f.ia.connected_ep({.request = &f.ia.evd(64, kEvdRmrBind | kEvdDto)}, {});
  Ep& other = f.ia.connected_ep({.request = &f.ia.evd(64, kEvdRmrBind | kEvdDto)}, {});
  Lmr& lmr = *f.region();
  f.make_windows(kMany);
  std::vector<uint32_t> contexts;
  for (uint32_t i = 0; i < kMany; ++i) contexts.push_back(f.bind(*f.windows[i], i % 2 ? ep : other, lmr));
  f.make_windows(kMany);  // beside those that are bound
  WindowTable& table = f.ia.get().windows();
  const auto found = [&](uint32_t context) { return table.find(context, f.ia.pz()).has_value(); };
  for (const uint32_t context : contexts) CHECK(found(context));
  CHECK(!found(0));
  {
    std::lock_guard guard(control_mutex());
    Pz& other_pz = *Pz::create(f.ia.get()).value();
    CHECK(!table.find(contexts[0], other_pz));
  }
  table.invalidated(contexts[3]);
  CHECK(!found(contexts[3]));
  CHECK_EQUAL(lmr.windows().load(), kMany - 1);
  // Bound again, and elsewhere: the old context is stale.
  const uint32_t again = f.bind(*f.windows[5], other, lmr);
  CHECK(!found(contexts[5]));
  CHECK(found(again));
  {
    std::lock_guard guard(control_mutex());
    CHECK(Ep::free(ep).has_value());
  }
  for (uint32_t i = 0; i < kMany; ++i) {
    const bool stays = i % 2 == 0;
    if (i != 5) CHECK_EQUAL(found(contexts[i]), stays);
  }
  CHECK(found(again));
  std::lock_guard guard(control_mutex());
  for (Rmr* window : f.windows) CHECK(Rmr::free(*window).has_value());
  CHECK_EQUAL(lmr.windows().load(), 0);
}

// True if the function takes less time once. Other programs may use the machine during many other calls.
template <class Function>
bool takes_less(int64_t limit_ns, Function function) {
  constexpr int64_t kPatience_ns = 20'000'000'000;
  const int64_t end = now_ns() + kPatience_ns;
  for (int calls = 0; calls < 200 || now_ns() < end; ++calls) {
    const int64_t start = now_ns();
    function();
    if (now_ns() - start < limit_ns) return true;
  }
  return false;
}

// Neither the time of a look-up grows with the number of windows, nor the time of freeing an endpoint that has none.
void window_table__many_windows_cost_no_more_than_few() {
  Fixture f;
  Ep& ep = f.ia.connected_ep({.request = &f.ia.evd(64, kEvdRmrBind | kEvdDto)}, {});
  Ep& idle = f.ia.connected_ep({}, {});
  Lmr& lmr = *f.region();
  constexpr uint32_t kMany = 10'000;
  f.make_windows(kMany);
  for (Rmr* window : f.windows) f.bind(*window, ep, lmr);
  WindowTable& table = f.ia.get().windows();
  constexpr int64_t kWalk_ns = 20'000;  // through so many, at best
  CHECK(takes_less(kWalk_ns, [&] { table.invalidated(7); }));
  CHECK(takes_less(kWalk_ns, [&] { (void)table.find(7, f.ia.pz()); }));
  CHECK(takes_less(kWalk_ns, [&] { CHECK_EQUAL(table.forget(idle), 0); }));
}

}  // namespace

int main() {
  const CMUnitTest windows[] = {
      TEST_IN_CHILD(window_table__finds_each_of_many),
      TEST_IN_CHILD(window_table__many_windows_cost_no_more_than_few),
  };
  // The fake device needs cache maintenance.
  const CMUnitTest syncs[] = {
      TEST_IN_CHILD(lmr_sync__holds_up_nobody_but_the_end_of_the_region),
      TEST_IN_CHILD(lmr_free__after_a_longjmp_out_of_a_sync),
      TEST_IN_CHILD(lmr_free__after_another_thread_left_a_sync),
      TEST_IN_CHILD(lmr_free__after_a_longjmp_out_of_the_look_at_a_list),
      TEST_IN_CHILD(lmr_free__waits_for_a_sync_that_a_handler_interrupted),
  };
  const int failed = cmocka_run_group_tests(windows, nullptr, nullptr);
  if (dapple::coherence::cpu_back_end().cpu.refusal != nullptr) {
    puts("SKIP: this CPU has no cache maintenance for programs");
    return failed != 0 ? failed : 77;
  }
  return failed + cmocka_run_group_tests(syncs, nullptr, nullptr);
}
