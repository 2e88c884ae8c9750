// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completions at moments that no real device can be made to produce, and devices that are removed.
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/udapl-core/captured.hpp"
#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/endpoint/srq.hpp"

using namespace dapple::udapl;

namespace {

constexpr ibv_sge kSegment{0x1000, 256, 1};
constexpr RemoteBuffer kRemote{0x1000, 4096, 7};

// Software iWARP, whose rings the provider flushes: a request that completes before its poster counts it is not one
// that is left.
void ep_post__completes_and_the_connection_ends_before_the_post_returns() {
  fake_device::reset();
  fake_device::state.vendor_id = 0x626d74;
  fake_device::state.transport = IBV_TRANSPORT_IWARP;
  fake_device::Ia ia(false);
  Ep& ep = ia.connected_ep({}, {});
  Evd& evd = *ep.evds().request;
  Event event;
  uint32_t flushed = 0;
  fake_device::state.in_post = [&] {
    fake_device::state.in_post = nullptr;
    CHECK(take_event(evd, event).has_value());
    CHECK(event.dto.status == DtoStatus::kSuccess);
    CHECK(ep.request_idle());
    std::lock_guard guard(control_mutex());
    CHECK(ep.disconnect(true).has_value());
    while (flushed < 10 && take_event(evd, event)) ++flushed;
  };
  CHECK(ep.post_rdma_write({&kSegment, 1}, 1, kRemote, 0).has_value());
  CHECK_EQUAL(flushed, 0);
  CHECK(!take_event(evd, event));
  CHECK(ep.request_idle());
}

void evd_wait__ends_when_the_device_has_gone() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  Result<> result;
  std::atomic<bool> ended = false;
  std::thread waiter([&] {
    Event event;
    uint32_t more;
    result = wait_for_event(evd, 5'000'000, 1, event, more);
    ended = true;
  });
  while (!evd.has_waiter()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fake_device::remove();
  for (int patience = 2000; !ended && patience; --patience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(ended);
  waiter.join();
  CHECK(!result && result.error().type == Type::kInternalError);
}

// One EVD for connections, requests and receives. Several endpoints use it.
struct OneEvd {
  OneEvd() { fake_device::state.holds = true; }
  Ep& connect() {
    Ep* ep = nullptr;
    {
      std::lock_guard guard(control_mutex());
      ep = Ep::create(ia.get(), &ia.pz(), {.recv = &evd, .request = &evd, .connect = &evd}, {}, nullptr).value();
    }
    fake_device::begin_connect(*ep);
    while (ep->state() != EpState::kConnected) std::this_thread::yield();
    // The event comes after the state, under this lock.
    std::lock_guard guard(control_mutex());
    return *ep;
  }
  void receive(Ep& ep, uint64_t cookie) {
    CHECK(ep.post_recv({&kSegment, 1}, cookie, 0).has_value());
    fake_device::complete(ep.qp_num());
  }
  void disconnect(Ep& ep) {
    std::lock_guard guard(control_mutex());
    CHECK(ep.disconnect(true).has_value());
  }
  void expect(EventKind kind, const Ep& ep) {
    Event event{};
    CHECK(take_event(evd, event).has_value());
    CHECK(event.kind == kind && event.connection.ep == &ep);
  }
  void expect(uint64_t cookie, DtoStatus status = DtoStatus::kSuccess) {
    Event event{};
    CHECK(take_event(evd, event).has_value());
    CHECK(event.kind == EventKind::kDtoCompletion);
    CHECK_EQUAL(event.dto.user_cookie, cookie);
    CHECK(event.dto.status == status);
  }
  void expect_nothing() {
    Event event;
    CHECK(!take_event(evd, event));
  }

  fake_device::Ia ia{(fake_device::reset(), false)};
  Evd& evd = ia.evd(64, kEvdDto | kEvdConnection);
};

void disconnect__comes_after_the_completions_on_one_evd() {
  OneEvd rig;
  Ep& ep = rig.connect();
  rig.expect(EventKind::kEstablished, ep);
  for (uint64_t i = 0; i < 16; ++i) rig.receive(ep, i);
  rig.expect(0);  // moves more of them from the CQ
  rig.disconnect(ep);
  for (uint64_t i = 1; i < 16; ++i) rig.expect(i);
  rig.expect(EventKind::kDisconnected, ep);
  rig.expect_nothing();
}

// Events that were made before the end, or come later, keep their places.
void disconnect__moves_no_other_event_on_one_evd() {
  OneEvd rig;
  Ep& first = rig.connect();
  rig.expect(EventKind::kEstablished, first);
  rig.receive(first, 1);
  Ep& second = rig.connect();
  rig.receive(second, 2);
  rig.disconnect(first);
  Ep& third = rig.connect();
  rig.receive(third, 3);
  rig.expect(EventKind::kEstablished, second);
  rig.expect(1);
  rig.expect(2);
  rig.expect(EventKind::kDisconnected, first);
  rig.expect(EventKind::kEstablished, third);
  rig.expect(3);
  rig.disconnect(second);
  rig.disconnect(third);
  rig.expect(EventKind::kDisconnected, second);
  rig.expect(EventKind::kDisconnected, third);
  rig.expect_nothing();
}

// The event does not wait for the completions of an endpoint that is freed.
void disconnect__comes_without_the_completions_of_a_freed_ep() {
  OneEvd rig;
  Ep& first = rig.connect();
  Ep& second = rig.connect();
  rig.expect(EventKind::kEstablished, first);
  rig.expect(EventKind::kEstablished, second);
  rig.receive(first, 1);
  rig.disconnect(second);
  {
    std::lock_guard guard(control_mutex());
    CHECK(Ep::free(first).has_value());
  }
  rig.expect(EventKind::kDisconnected, second);
  rig.expect_nothing();
}

// siw makes such a completion when it ends a connection in error.
void evd_dequeue__passes_over_completions_of_no_request() {
  fake_device::reset();
  fake_device::state.holds = true;
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  Ep& ep = ia.connected_ep({.request = &evd}, {});
  Event event;
  fake_device::complete_nothing(ep.qp_num());
  CHECK(!take_event(evd, event));
  CHECK(ep.post_rdma_write({&kSegment, 1}, 7, kRemote, 0).has_value());
  fake_device::complete_nothing(ep.qp_num());
  fake_device::fail(ep.qp_num(), IBV_WC_WR_FLUSH_ERR);
  fake_device::complete_nothing(ep.qp_num());
  CHECK(take_event(evd, event).has_value());
  CHECK_EQUAL(event.dto.user_cookie, 7);
  CHECK(event.dto.status == DtoStatus::kFlushed);
  CHECK(!take_event(evd, event));
}

// The channel of the EVD stays readable, but the CNO reports the EVD once.
void cno_wait__reports_an_evd_whose_device_has_gone() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  Cno& cno = ia.cno();
  {
    std::lock_guard guard(control_mutex());
    CHECK(evd.set_cno(&cno).has_value());
  }
  fake_device::remove();
  const auto triggered = cno.notifier()->wait(5'000'000);
  CHECK(triggered && *triggered == &evd);
  pollfd set = {cno.notifier()->fd(), POLLIN, 0};
  CHECK_EQUAL(poll(&set, 1, 0), 0);
  const auto nothing = cno.notifier()->wait(1000);
  CHECK(!nothing && nothing.error().type == Type::kQueueEmpty);
  Event event;
  uint32_t more;
  const auto result = wait_for_event(evd, 5'000'000, 1, event, more);
  CHECK(!result && result.error().type == Type::kInternalError);
}

// The device does not let go of the queue pair, so the EVD and the CNO stay, too.
void ia_close__device_keeps_an_object__a_wait_on_the_cno_ends() {
  fake_device::reset();
  auto ia = std::make_unique<fake_device::Ia>(true);
  Evd& evd = ia->evd(64);
  Cno& cno = ia->cno();
  {
    std::lock_guard guard(control_mutex());
    CHECK(evd.set_cno(&cno).has_value());
  }
  ia->connected_ep({.recv = &evd}, {});
  const std::shared_ptr<Notifier> notifier = cno.notifier();
  fake_device::state.keeps_queue_pairs = true;
  std::thread waiter([&] {
    const auto found = notifier->wait(10'000'000);
    CHECK(found && !*found);
  });
  ia.reset();
  waiter.join();
}

// The EVD was made for fewer requests, because most suppressed requests make no completion while they succeed.
void ep_post__suppressed_ones_have_room_to_be_flushed() {
  constexpr uint32_t kPosted = 63;
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& request = ia.evd(8);
  EpAttr attr{};
  attr.max_request_dtos = kPosted + 1;
  fake_device::state.holds = true;
  for (int i = 0; i < 2; ++i) {
    Ep& ep = ia.connected_ep({.recv = nullptr, .request = &request, .connect = nullptr}, attr);
    for (uint32_t n = 0; n < kPosted; ++n) {
      CHECK(ep.post_rdma_write({&kSegment, 1}, n, kRemote, kSuppress).has_value());
    }
    std::lock_guard guard(control_mutex());
    CHECK(ep.disconnect(true).has_value());
  }
  CHECK_EQUAL(fake_device::state.overflows, 0U);
  Event event;
  uint32_t flushed = 0;
  while (take_event(request, event)) flushed += event.dto.status == DtoStatus::kFlushed;
  CHECK_EQUAL(flushed, 2 * kPosted);
}

uint32_t lines_of(const std::string& text) {
  return static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
}

void evd_post__a_storm_of_lost_events_is_told_in_few_lines() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(4, kEvdConnection);
  Event event{};
  event.kind = EventKind::kBroken;
  const std::string said = captured([&] {
    for (int i = 0; i < 10'000; ++i) (void)evd.post(event);
  });
  CHECK(lines_of(said) >= 2);
  CHECK(lines_of(said) < 20);
  // The first event is delivered as usual.
  CHECK(said.find("an event was lost because its EVD of 4 entries is full") != std::string::npos);
}

uint32_t open_descriptors() {
  uint32_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count;
}

void evd__of_software_events_takes_no_descriptor() {
  fake_device::reset();
  fake_device::Ia ia(false);
  const uint32_t before = open_descriptors();
  std::vector<Evd*> evds;
  for (int i = 0; i < 100; ++i) evds.push_back(&ia.evd(8, kEvdConnection));
  CHECK_EQUAL(open_descriptors(), before);
  Event event;
  uint32_t more;
  CHECK(!wait_for_event(*evds[0], 1000, 1, event, more));
  CHECK_EQUAL(open_descriptors(), before);
}

// Receives of many endpoints complete on one EVD, and the test looks at it once.
void srq_query__with_many_endpoints_on_one_evd() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& recv = ia.evd(64);
  Evd& request = ia.evd(64);
  Evd& connect = ia.evd(8, kEvdConnection);
  Srq* srq = nullptr;
  {
    std::lock_guard guard(control_mutex());
    srq = Srq::create(ia.get(), ia.pz(), {.max_recv_dtos = 32, .max_recv_iov = 1}).value();
  }
  for (int i = 0; i < 50; ++i) ia.connected_ep({&recv, &request, &connect}, {}, srq);
  constexpr auto kPolls = static_cast<size_t>(EvdCounter::kPoll);
  const uint64_t before = recv.counters().at(kPolls);
  std::lock_guard guard(control_mutex());
  CHECK_EQUAL(srq->count().outstanding, 0);
  CHECK_EQUAL(recv.counters().at(kPolls) - before, 1);
}

sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// The device does not let go of the queue pair, so the EP stays; but its exchange is over, and no event tells of it.
void ep_free__fails_while_datagrams_connect() {
  constexpr uint32_t kTimeout_us = 20'000;
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& connect = ia.evd(8, kEvdConnection);
  fake_device::state.unanswered = true;
  const sockaddr_in peer = loopback();
  {
    std::lock_guard guard(control_mutex());
    const EpEvds evds{.recv = nullptr, .request = nullptr, .connect = &connect};
    Ep* const ep = Ep::create(ia.get(), &ia.pz(), evds, {.datagrams = true}).value();
    CHECK(ep->connect(reinterpret_cast<const sockaddr*>(&peer), 1, kTimeout_us, {}).has_value());
    fake_device::state.keeps_queue_pairs = true;
    CHECK(!Ep::free(*ep));
  }
  Event event;
  uint32_t more;
  CHECK(!wait_for_event(connect, 5 * kTimeout_us, 1, event, more));
  fake_device::state.keeps_queue_pairs = false;
}

// As above, but an event of the exchange waits already.
void ep_free__fails_with_an_event_of_datagrams() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& connect = ia.evd(8, kEvdConnection);
  fake_device::state.unanswered = true;
  const sockaddr_in peer = loopback();
  Ep* ep = nullptr;
  {
    std::lock_guard guard(control_mutex());
    const EpEvds evds{.recv = nullptr, .request = nullptr, .connect = &connect};
    ep = Ep::create(ia.get(), &ia.pz(), evds, {.datagrams = true}).value();
    for (int i = 0; i < 2; ++i) CHECK(ep->connect(reinterpret_cast<const sockaddr*>(&peer), 1, 1, {}).has_value());
  }
  Event event;
  uint32_t more;
  CHECK(wait_for_event(connect, 5'000'000, 1, event, more).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  {
    std::lock_guard guard(control_mutex());
    fake_device::state.keeps_queue_pairs = true;
    CHECK(!Ep::free(*ep));
  }
  CHECK(!wait_for_event(connect, 1000, 1, event, more));
  fake_device::state.keeps_queue_pairs = false;
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(ep_post__completes_and_the_connection_ends_before_the_post_returns),
      TEST_IN_CHILD(ep_post__suppressed_ones_have_room_to_be_flushed),
      TEST_IN_CHILD(evd_wait__ends_when_the_device_has_gone),
      TEST_IN_CHILD(disconnect__comes_after_the_completions_on_one_evd),
      TEST_IN_CHILD(disconnect__moves_no_other_event_on_one_evd),
      TEST_IN_CHILD(disconnect__comes_without_the_completions_of_a_freed_ep),
      TEST_IN_CHILD(evd_dequeue__passes_over_completions_of_no_request),
      TEST_IN_CHILD(cno_wait__reports_an_evd_whose_device_has_gone),
      TEST_IN_CHILD(ia_close__device_keeps_an_object__a_wait_on_the_cno_ends),
      TEST_IN_CHILD(evd_post__a_storm_of_lost_events_is_told_in_few_lines),
      TEST_IN_CHILD(evd__of_software_events_takes_no_descriptor),
      TEST_IN_CHILD(ep_free__fails_while_datagrams_connect),
      TEST_IN_CHILD(ep_free__fails_with_an_event_of_datagrams),
      TEST_IN_CHILD(srq_query__with_many_endpoints_on_one_evd),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
