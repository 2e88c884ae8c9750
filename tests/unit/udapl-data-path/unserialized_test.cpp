// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An IA that is not thread-safe, and threads in the functions that are safe on it: each event reaches one of them once,
// and no thread finds an object that is being freed.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/core/memory/sync.hpp"

using namespace dapple::udapl;

namespace {

constexpr uint32_t kPosts = 30'000;
constexpr int64_t kPatience_ns = 240'000'000'000;

class Seen {
 public:
  explicit Seen(uint32_t count) : count_(count), seen_(std::make_unique<std::atomic<uint8_t>[]>(count)) {}
  void note(uint64_t cookie) {
    if (cookie >= count_) return void(++strange_);
    ++seen_[cookie];
    ++total_;
  }
  bool all() const { return total_ >= count_; }
  void check() const {
    uint32_t lost = 0;
    uint32_t doubled = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      lost += seen_[i] == 0;
      doubled += seen_[i] > 1;
    }
    CHECK_EQUAL(lost, 0);
    CHECK_EQUAL(doubled, 0);
    CHECK_EQUAL(strange_.load(), 0);
  }

 private:
  uint32_t count_;
  std::unique_ptr<std::atomic<uint8_t>[]> seen_;
  std::atomic<uint32_t> total_ = 0;
  std::atomic<uint32_t> strange_ = 0;
};

struct Rig {
  explicit Rig(uint32_t evd_qlen = 64) : evd((fake_device::reset(), ia.evd(evd_qlen))) {}

  fake_device::Ia ia{false};
  Evd& evd;
  Seen seen{kPosts};
  std::atomic<bool> posted = false;

  // Takes the remaining events, until all have arrived or no more arrive.
  bool goes_on(int64_t since) const { return !seen.all() && (!posted || now_ns() - since < kPatience_ns / 20); }

  void note(const Event& event) {
    if (event.kind == EventKind::kDtoCompletion) seen.note(event.dto.user_cookie);
  }

  void wait() {
    Event event;
    uint32_t more;
    for (int64_t since = now_ns(); goes_on(since);) {
      if (!wait_for_event(evd, 1000, 1, event, more)) continue;
      note(event);
      since = now_ns();
    }
  }

  void dequeue() {
    Event event;
    for (int64_t since = now_ns(); goes_on(since);) {
      if (!take_event(evd, event)) continue;
      note(event);
      since = now_ns();
    }
  }

  // post(cookie): one more event, or INSUFFICIENT_RESOURCES.
  template <class Post>
  void post_all(Post post) {
    const int64_t since = now_ns();
    for (uint32_t i = 0; i < kPosts && now_ns() - since < kPatience_ns;) {
      const Result<> result = post(i);
      if (result) {
        ++i;
      } else if (result.error().type != Type::kInsufficientResources) {
        CHECK(!"a post failed");
        break;
      } else {
        std::this_thread::yield();
      }
    }
    posted = true;
  }
};

const RemoteBuffer kRemote{0x1000, 4096, 7};

void evd_wait__beside_posts_that_find_the_ring_full() {
  Rig rig;
  Ep& ep = rig.ia.connected_ep({.request = &rig.evd}, {});
  std::thread waiter([&] { rig.wait(); });
  const ibv_sge segment{0x1000, 256, 1};
  rig.post_all([&](uint32_t i) { return ep.post_rdma_write({&segment, 1}, i, kRemote, 0); });
  waiter.join();
  rig.seen.check();
}

void evd_wait__beside_receives_that_find_the_ring_full() {
  Rig rig;
  Ep& ep = rig.ia.connected_ep({.recv = &rig.evd}, {});
  std::thread waiter([&] { rig.wait(); });
  const ibv_sge segment{0x1000, 256, 1};
  rig.post_all([&](uint32_t i) { return ep.post_recv({&segment, 1}, i, 0); });
  waiter.join();
  rig.seen.check();
}

void evd_dequeue__beside_a_wait_on_the_cno() {
  Rig rig;
  Cno& cno = rig.ia.cno();
  Ep& ep = rig.ia.connected_ep({.request = &rig.evd}, {});
  CHECK(rig.evd.set_cno(&cno).has_value());
  std::thread waiter([&] {
    while (!rig.seen.all() && !rig.posted) (void)cno.notifier()->wait(1000);
  });
  std::thread taker([&] { rig.dequeue(); });
  const ibv_sge segment{0x1000, 256, 1};
  rig.post_all([&](uint32_t i) { return ep.post_rdma_write({&segment, 1}, i, kRemote, 0); });
  waiter.join();
  taker.join();
  rig.seen.check();
}

void srq_post_recv__beside_a_wait() {
  Rig rig;
  Srq* srq = nullptr;
  {
    std::lock_guard guard(control_mutex());
    srq = Srq::create(rig.ia.get(), rig.ia.pz(), {.max_recv_dtos = 32, .max_recv_iov = 1}).value();
  }
  rig.ia.connected_ep({.recv = &rig.evd}, {}, srq);
  rig.ia.connected_ep({.recv = &rig.evd}, {}, srq);
  std::thread waiter([&] { rig.wait(); });
  const ibv_sge segment{0x1000, 256, 1};
  rig.post_all([&](uint32_t i) { return srq->post_recv({&segment, 1}, i); });
  waiter.join();
  rig.seen.check();
}

struct Triplet {
  uint32_t lmr_context;
  uint64_t virtual_address;
  uint64_t segment_length;
};

// Regions are made and freed while others are looked up.
void lmr_sync__beside_registrations() {
  fake_device::reset();
  fake_device::Ia ia(false);
  static char memory[4096];
  std::vector<Triplet> segments;
  for (int i = 0; i < 8; ++i) {
    segments.push_back({ia.lmr(memory, sizeof memory).context(), reinterpret_cast<uint64_t>(memory), sizeof memory});
  }
  std::atomic<bool> done = false;
  std::thread registrar([&] {
    for (int round = 0; round < 100; ++round) {
      std::vector<Lmr*> made;
      for (int i = 0; i < 100; ++i) made.push_back(&ia.lmr(memory, sizeof memory));
      std::lock_guard guard(control_mutex());
      for (Lmr* lmr : made) CHECK(Lmr::free(*lmr).has_value());
    }
    done = true;
  });
  const SyncFunction nothing = [](const dappledv_region_attr*, const iovec*, size_t) { return 0; };
  uint32_t failures = 0;
  while (!done) failures += !sync_segments(ia.get(), segments.data(), segments.size(), nothing);
  registrar.join();
  CHECK_EQUAL(failures, 0);
}

// One thread binds, another takes the completions, a third makes windows and frees them.
void rmr_bind__beside_a_wait_and_windows_that_come_and_go() {
  fake_device::reset();
  fake_device::Ia ia(false);
  static char memory[4096];
  constexpr uint32_t kBinds = 10'000;
  Evd& evd = ia.evd(64, kEvdRmrBind | kEvdDto);
  Ep& ep = ia.connected_ep({.request = &evd}, {});
  Lmr& lmr = ia.lmr(memory, sizeof memory);
  Rmr* window = nullptr;
  {
    std::lock_guard guard(control_mutex());
    window = Rmr::create(ia.get(), ia.pz(), true).value();
  }
  std::atomic<bool> done = false;
  std::atomic<uint32_t> taken = 0;
  std::thread waiter([&] {
    Event event;
    uint32_t more;
    for (int64_t since = now_ns(); taken < kBinds && now_ns() - since < kPatience_ns;) {
      if (wait_for_event(evd, 1000, 1, event, more)) ++taken;
    }
  });
  std::thread maker([&] {
    while (!done) {
      std::lock_guard guard(control_mutex());
      Rmr* other = Rmr::create(ia.get(), ia.pz(), false).value();
      CHECK(Rmr::free(*other).has_value());
    }
  });
  const int64_t since = now_ns();
  for (uint32_t i = 0; i < kBinds && now_ns() - since < kPatience_ns;) {
    const auto bound = window->bind(ep, {.target = {.lmr = &lmr,
                                                    .lmr_context = lmr.context(),
                                                    .address = reinterpret_cast<uint64_t>(memory),
                                                    .length = sizeof memory,
                                                    .privileges = kRemoteWrite},
                                         .cookie = i,
                                         .flags = 0});
    i += bound.has_value();
  }
  waiter.join();
  done = true;
  maker.join();
  CHECK_EQUAL(taken.load(), kBinds);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(evd_wait__beside_posts_that_find_the_ring_full),
      TEST_IN_CHILD(evd_wait__beside_receives_that_find_the_ring_full),
      TEST_IN_CHILD(evd_dequeue__beside_a_wait_on_the_cno),
      TEST_IN_CHILD(srq_post_recv__beside_a_wait),
      TEST_IN_CHILD(lmr_sync__beside_registrations),
      TEST_IN_CHILD(rmr_bind__beside_a_wait_and_windows_that_come_and_go),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
