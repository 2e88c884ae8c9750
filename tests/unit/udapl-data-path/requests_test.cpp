// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The way of a work request: each one that was posted brings one event, or none if it is suppressed, and its place is
// free again afterwards.
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/endpoint/ep_limits.hpp"
#include "udapl/core/endpoint/ep_post_fast.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/memory/lmr.hpp"

using namespace dapple::udapl;

namespace {

constexpr ibv_sge kSegment{0x1000, 256, 1};
constexpr RemoteBuffer kRemote{0x1000, 4096, 7};
constexpr uint32_t kLong_us = 10'000'000;
constexpr uint32_t kPlaces = 4;

struct Rig {
  explicit Rig(uint32_t qlen = 64, const EpAttr& attr = {.max_recv_dtos = kPlaces, .max_request_dtos = kPlaces})
      : recv(ia.evd(qlen)), request(ia.evd(qlen)), ep(ia.connected_ep({.recv = &recv, .request = &request}, attr)) {}

  Result<> write(uint64_t cookie, uint32_t flags = 0) {
    return ep.post_rdma_write({&kSegment, 1}, cookie, kRemote, flags);
  }
  std::optional<int> write_fast(uint64_t cookie) {
    return ep.post_request_fast<DtoOperation::kRdmaWrite>(1, &kSegment, cookie, kRemote, 0);
  }
  std::optional<int> receive_fast(uint64_t cookie) { return ep.post_recv_fast(1, &kSegment, cookie, 0); }
  // Ends the connection; the EP is DISCONNECTED.
  void disconnect() {
    {
      std::lock_guard guard(control_mutex());
      CHECK(ep.disconnect(true).has_value());
    }
    Event event;
    uint32_t more;
    while (ep.state() != EpState::kDisconnected) {
      if (!wait_for_event(*ep.evds().connect, kLong_us, 1, event, more)) return CHECK(!"disconnected");
    }
  }
  // The cookies of all events, which have this status.
  std::vector<uint64_t> take(Evd& evd, DtoStatus status = DtoStatus::kSuccess) {
    std::vector<uint64_t> cookies;
    for (Event event; take_event(evd, event);) {
      CHECK(event.dto.status == status);
      cookies.push_back(event.dto.user_cookie);
    }
    return cookies;
  }

  fake_device::Ia ia{false};
  Evd& recv;
  Evd& request;
  Ep& ep;
};

using Cookies = std::vector<uint64_t>;

void post_fast__a_refused_request_leaves_its_place() {
  fake_device::reset();
  Rig rig;
  fake_device::state.holds = true;
  for (int round = 0; round < 3; ++round) {
    CHECK_EQUAL(rig.write_fast(0).value_or(-1), 0);
    fake_device::state.refuses = ENOMEM;
    for (int i = 0; i < 10; ++i) {
      CHECK_EQUAL(rig.write_fast(100).value_or(-1), ENOMEM);
      CHECK_EQUAL(rig.receive_fast(100).value_or(-1), ENOMEM);
    }
    fake_device::state.refuses = 0;
    for (uint64_t i = 1; i < kPlaces; ++i) CHECK_EQUAL(rig.write_fast(i).value_or(-1), 0);
    for (uint64_t i = 0; i < kPlaces; ++i) CHECK_EQUAL(rig.receive_fast(i).value_or(-1), 0);
    CHECK(!rig.write_fast(100).has_value());
    fake_device::complete(rig.ep.qp_num());
    CHECK(rig.take(rig.request) == (Cookies{0, 1, 2, 3}));
    CHECK(rig.take(rig.recv) == (Cookies{0, 1, 2, 3}));
    CHECK(rig.ep.request_idle() && rig.ep.recv_idle());
  }
}

void post__suppressed_ones_without_end() {
  fake_device::reset();
  Rig rig(8, {.max_request_dtos = 32});
  for (uint64_t i = 0; i < 5'000; ++i) CHECK(rig.write(i, kSuppress).has_value());
  CHECK(rig.take(rig.request).empty());
  CHECK(rig.write(7).has_value());
  CHECK(rig.take(rig.request) == Cookies{7});
  CHECK(rig.ep.request_idle());
  CHECK_EQUAL(fake_device::state.overflows, 0U);
  CHECK(fake_device::state.unsignalled > 4'000U);
}

// Each of these EPs would ask for a completion of its one request, which the consumer does not count.
void post__suppressed_ones_of_many_eps_fit_into_the_cq() {
  fake_device::reset();
  fake_device::state.holds = fake_device::state.cannot_resize = true;
  fake_device::Ia ia(false);
  Evd& request = ia.evd(8);
  std::vector<Ep*> eps;
  for (int i = 0; i < 60; ++i) {
    eps.push_back(&ia.connected_ep({.request = &request}, {.max_request_dtos = 2}));
    CHECK(eps.back()->post_rdma_write({&kSegment, 1}, 0, kRemote, kSuppress).has_value());
  }
  for (Ep* ep : eps) fake_device::complete(ep->qp_num());
  CHECK_EQUAL(fake_device::state.overflows, 0U);
}

// Nobody has a reason to look at the CQ, because no receive brings an event.
void post_recv__suppressed_ones_without_end() {
  fake_device::reset();
  Rig rig;
  for (uint64_t i = 0; i < 100; ++i) CHECK(rig.ep.post_recv({&kSegment, 1}, i, kSuppress).has_value());
  CHECK(rig.take(rig.recv).empty());
}

void post__suppressed_ones_that_nobody_completes() {
  fake_device::reset();
  Rig rig(8, {.max_request_dtos = 32});
  fake_device::state.holds = true;
  uint32_t posted = 0;
  while (posted < 100 && rig.write(posted, kSuppress)) ++posted;
  CHECK_EQUAL(posted, 32);
  fake_device::complete(rig.ep.qp_num());
  CHECK(rig.write(0, kSuppress).has_value());
}

void completion__an_error_breaks_the_connection() {
  fake_device::reset();
  Rig rig;
  fake_device::state.holds = true;
  CHECK(rig.write(1).has_value());
  fake_device::fail(rig.ep.qp_num(), IBV_WC_REM_ACCESS_ERR);
  CHECK(rig.take(rig.request, DtoStatus::kRemoteAccess) == Cookies{1});
  Event event;
  uint32_t more;
  CHECK(wait_for_event(*rig.ep.evds().connect, kLong_us, 1, event, more).has_value() &&
        event.kind == EventKind::kBroken);
}

// The number of segments of an RDMA Read on an EP with these attributes; 0 if they are refused.
uint32_t read_iov(Ia& ia, const EpAttr& attr) {
  const auto fits = check(ia, with_defaults(ia, attr));
  return fits ? with_defaults(ia, attr).max_rdma_read_iov : 0;
}

void ep_attr__segments_of_reads() {
  fake_device::reset();
  {
    fake_device::Ia ia(false);
    CHECK_EQUAL(ia.get().max_read_segments(), 16);
    CHECK_EQUAL(read_iov(ia.get(), {}), 4);
    CHECK_EQUAL(read_iov(ia.get(), {.max_request_iov = 16}), 16);
    CHECK_EQUAL(read_iov(ia.get(), {.max_rdma_read_iov = 16}), 16);
    CHECK_EQUAL(read_iov(ia.get(), {.max_rdma_read_iov = 17}), 0);
  }
  fake_device::state.max_sge_rd = 2;
  {
    fake_device::Ia ia(false);
    CHECK_EQUAL(ia.get().max_read_segments(), 2);
    CHECK_EQUAL(read_iov(ia.get(), {}), 2);
    CHECK_EQUAL(read_iov(ia.get(), {.max_request_iov = 16}), 2);
    CHECK_EQUAL(read_iov(ia.get(), {.max_rdma_read_iov = 2}), 2);
    CHECK_EQUAL(read_iov(ia.get(), {.max_rdma_read_iov = 3}), 0);
    CHECK_EQUAL(read_iov(ia.get(), {.max_request_iov = 16, .datagrams = true}), 2);
  }
  fake_device::state.max_sge_rd = 30;
  fake_device::state.transport = IBV_TRANSPORT_IWARP;
  fake_device::Ia ia(false);
  CHECK_EQUAL(ia.get().max_read_segments(), 1);
  CHECK_EQUAL(read_iov(ia.get(), {}), 1);
  CHECK_EQUAL(read_iov(ia.get(), {.max_rdma_read_iov = 4}), 1);
}

alignas(65536) char memory[4096];  // a zero-based region begins with a page of the kernel

// The device flushes the receives after it has refused a request of the peer, and it has to tell the peer first.
void completion__a_flushed_receive_breaks_the_connection_a_little_later() {
  fake_device::reset();
  Rig rig;
  fake_device::state.holds = true;
  for (uint64_t i = 0; i < kPlaces; ++i) CHECK(rig.ep.post_recv({&kSegment, 1}, i, 0).has_value());
  const int64_t start = now_ns();
  int64_t told_peer = 0;
  fake_device::state.in_disconnect = [&] { told_peer = now_ns(); };
  fake_device::fail(rig.ep.qp_num(), IBV_WC_WR_FLUSH_ERR);
  CHECK(rig.take(rig.recv, DtoStatus::kFlushed) == (Cookies{0, 1, 2, 3}));
  Event event;
  uint32_t more;
  CHECK(wait_for_event(*rig.ep.evds().connect, kLong_us, 1, event, more).has_value() &&
        event.kind == EventKind::kBroken);
  CHECK(told_peer - start >= 20'000'000);
}

// The CPU copies inline data, and the device then checks no lmr_context.
struct InlineRig : Rig {
  // True if a request with these segments goes inline, as a Send and as an RDMA Write.
  bool inlines(std::initializer_list<ibv_sge> segments) {
    const uint32_t before = fake_device::state.inlined;
    const auto count = static_cast<int>(segments.size());
    if (!ep.post_request_fast<DtoOperation::kSend>(count, segments.begin(), 1, {}, 0))
      CHECK(ep.post_send({segments.begin(), segments.size()}, 1, 0).has_value());
    if (!ep.post_request_fast<DtoOperation::kRdmaWrite>(count, segments.begin(), 1, kRemote, 0))
      CHECK(ep.post_rdma_write({segments.begin(), segments.size()}, 1, kRemote, 0).has_value());
    CHECK_EQUAL(take(request).size(), 2);
    const uint32_t inlined = fake_device::state.inlined - before;
    CHECK(inlined == 0 || inlined == 2);
    return inlined == 2;
  }
  bool fast(std::initializer_list<ibv_sge> segments) {
    const auto posted =
        ep.post_request_fast<DtoOperation::kSend>(static_cast<int>(segments.size()), segments.begin(), 1, {}, 0);
    take(request);
    return posted.has_value();
  }
  Lmr& region(bool zero_based = false) {
    std::unique_lock control(control_mutex());
    const LmrAttr attr{.address = memory, .length = 4096, .privileges = kAllPrivileges, .zero_based = zero_based};
    return *Lmr::create(ia.get(), pz ? *pz : ia.pz(), attr, control).value();
  }
  void free(Lmr& lmr) {
    std::lock_guard guard(control_mutex());
    CHECK(Lmr::free(lmr).has_value());
  }

  Pz* pz = nullptr;  // of further regions; null: the EP's
  const uint64_t base = reinterpret_cast<uint64_t>(memory);
};

void post__copies_only_from_regions_of_its_zone() {
  fake_device::reset();
  InlineRig rig;
  const uint32_t good = rig.region().context();
  const uint32_t other = rig.region().context();
  const uint64_t base = rig.base;
  for (int round = 0; round < 2; ++round) {
    CHECK(rig.inlines({{base, 64, good}}));
    CHECK(rig.inlines({{base + 4095, 1, good}}));
    CHECK(rig.inlines({{base, 8, good}, {base + 100, 8, good}}));
    CHECK(rig.inlines({{base, 8, good}, {base + 100, 8, other}}));
    CHECK(rig.inlines({{base, 8, good}, {1, 0, 0}}));
    CHECK(rig.inlines({{1, 0, 0}}));
    CHECK(!rig.inlines({{base, 65, good}}));
    CHECK(!rig.inlines({{base, 8, good + 1000}}));
    CHECK(!rig.inlines({{base, 8, good}, {base, 8, good + 1000}}));
    CHECK(!rig.inlines({{base + 4090, 8, good}}));
    CHECK(!rig.inlines({{base - 1, 8, good}}));
    CHECK(!rig.inlines({{UINT64_MAX - 3, 8, good}}));
    CHECK(!rig.inlines({{base + 4096, 1, good}}));
  }
  {
    std::lock_guard guard(control_mutex());
    rig.pz = Pz::create(rig.ia.get()).value();
  }
  CHECK(!rig.inlines({{base, 8, rig.region().context()}}));
  CHECK(rig.inlines({{base, 8, good}}));
}

// The usual request stays fast. The first one after a change is not, because the EP asks the table of regions.
void post__copies_from_the_last_region_without_asking() {
  fake_device::reset();
  InlineRig rig;
  const uint32_t good = rig.region().context();
  CHECK(rig.inlines({{rig.base, 8, good}}));
  CHECK(rig.fast({{rig.base + 8, 8, good}}));
  CHECK(rig.fast({{rig.base + 8, 8, good}, {rig.base + 4088, 8, good}}));
  rig.free(rig.region());
  CHECK(!rig.fast({{rig.base, 8, good}}));
  CHECK(rig.inlines({{rig.base, 8, good}}));
  CHECK(rig.fast({{rig.base, 8, good}}));
}

// The addresses of a zero-based region are not the CPU's.
void post__copies_nothing_from_a_zero_based_region() {
  fake_device::reset();
  InlineRig rig;
  const uint32_t zero_based = rig.region(true).context();
  CHECK(!rig.inlines({{0, 8, zero_based}}));
  CHECK(rig.inlines({{rig.base, 8, rig.region().context()}}));
}

void post__copies_nothing_from_a_freed_region() {
  fake_device::reset();
  InlineRig rig;
  Lmr& lmr = rig.region();
  const uint32_t context = lmr.context();
  CHECK(rig.inlines({{rig.base, 8, context}}));
  rig.free(lmr);
  CHECK(!rig.inlines({{rig.base, 8, context}}));
}

void post__copies_nothing_from_its_former_zone() {
  fake_device::reset();
  InlineRig rig;
  const uint32_t context = rig.region().context();
  CHECK(rig.inlines({{rig.base, 8, context}}));
  rig.disconnect();
  {
    std::lock_guard guard(control_mutex());
    CHECK(rig.ep.reset().has_value());
    rig.pz = Pz::create(rig.ia.get()).value();
    CHECK(rig.ep.configure(rig.pz, rig.ep.evds(), rig.ep.attr(), rig.ep.comm()).has_value());
  }
  Event disconnected;
  CHECK(take_event(*rig.ep.evds().connect, disconnected).has_value());
  fake_device::connect(rig.ep);
  CHECK(!rig.inlines({{rig.base, 8, context}}));
  CHECK(rig.inlines({{rig.base, 8, rig.region().context()}}));
}

// The fake device grants more than this.
void post__copies_no_more_than_the_environment_allows() {
  fake_device::reset();
  setenv("DAPL_MAX_INLINE", "16", 1);
  InlineRig rig;
  const uint32_t context = rig.region().context();
  CHECK(rig.inlines({{rig.base, 16, context}}));
  CHECK(!rig.inlines({{rig.base, 17, context}}));
}

// The device looks at its queue only when the queue pair enters the error state.
void post_recv__on_a_disconnected_ep() {
  fake_device::reset();
  Rig rig;
  fake_device::state.misses_late = true;
  rig.disconnect();
  CHECK(rig.ep.post_recv({&kSegment, 1}, 1, 0).has_value());
  CHECK_EQUAL(rig.receive_fast(2).value_or(-1), 0);
  CHECK(rig.take(rig.recv, DtoStatus::kFlushed) == (Cookies{1, 2}));
}

void become_siw() {
  fake_device::reset();
  fake_device::state.vendor_id = 0x626d74;
  fake_device::state.transport = IBV_TRANSPORT_IWARP;
  fake_device::state.holds = true;
}

// The provider flushes what software iWARP leaves; what the device completes afterwards brings no second event.
void flush__the_provider_was_faster_than_the_device() {
  become_siw();
  Rig rig;
  CHECK(rig.write(1).has_value());
  CHECK(rig.write(2).has_value());
  fake_device::state.never_flushes = true;
  rig.disconnect();
  CHECK(rig.take(rig.request, DtoStatus::kFlushed) == (Cookies{1, 2}));
  fake_device::fail(rig.ep.qp_num(), IBV_WC_WR_FLUSH_ERR);
  CHECK(rig.take(rig.request).empty());
  CHECK(rig.ep.request_idle());
}

void flush__a_request_on_a_disconnected_ep() {
  become_siw();
  Rig rig;
  rig.disconnect();
  CHECK(rig.write(3, kSuppress).has_value());
  CHECK(rig.write(4).has_value());
  CHECK(rig.take(rig.request, DtoStatus::kFlushed) == (Cookies{3, 4}));
}

void flush__more_requests_than_the_evd_can_hold() {
  constexpr uint32_t kMany = 300;
  become_siw();
  Rig rig(4, {.max_recv_dtos = kMany});
  for (uint64_t i = 0; i < kMany; ++i) CHECK(rig.ep.post_recv({&kSegment, 1}, i, 0).has_value());
  fake_device::state.never_flushes = true;
  rig.disconnect();
  const Cookies flushed = rig.take(rig.recv, DtoStatus::kFlushed);
  CHECK_EQUAL(flushed.size(), kMany);
  for (uint64_t i = 0; i < flushed.size(); ++i) CHECK_EQUAL(flushed[i], i);
}

void ep_free__its_flushed_requests_bring_no_event() {
  fake_device::reset();
  Rig rig;
  Ep& other = rig.ia.connected_ep({.recv = &rig.recv, .request = &rig.request}, {});
  fake_device::state.holds = true;
  CHECK(rig.write(1).has_value());
  CHECK(rig.ep.post_recv({&kSegment, 1}, 2, 0).has_value());
  CHECK(other.post_rdma_write({&kSegment, 1}, 3, kRemote, 0).has_value());
  {
    std::lock_guard guard(control_mutex());
    CHECK(Ep::free(rig.ep).has_value());
  }
  fake_device::complete(other.qp_num());
  CHECK(rig.take(rig.request) == Cookies{3});
  CHECK(rig.take(rig.recv).empty());
}

struct SharedRig {
  SharedRig() {
    std::lock_guard guard(control_mutex());
    srq = Srq::create(ia.get(), ia.pz(), {.max_recv_dtos = kPlaces, .max_recv_iov = 1}).value();
  }
  bool post(uint64_t cookie) { return srq->post_recv({&kSegment, 1}, cookie).has_value(); }
  SrqCounts count() {
    std::lock_guard guard(control_mutex());
    return srq->count();
  }

  fake_device::Ia ia{false};
  Srq* srq = nullptr;
};

// The fake device completes a receive at once, on one EP after the other.
void srq__each_place_is_free_after_its_event() {
  fake_device::reset();
  SharedRig rig;
  Evd& evd = rig.ia.evd(16);
  Ep* const eps[] = {&rig.ia.connected_ep({.recv = &evd}, {}, rig.srq),
                     &rig.ia.connected_ep({.recv = &evd}, {}, rig.srq)};
  uint32_t of_first = 0;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < kPlaces; ++i) CHECK(rig.post(i));
    CHECK(!rig.post(9));
    CHECK_EQUAL(rig.count().available, 0);
    CHECK_EQUAL(rig.count().outstanding, kPlaces);
    for (uint64_t i = 0; i < kPlaces; ++i) {
      Event event;
      CHECK(take_event(evd, event).has_value());
      CHECK_EQUAL(event.dto.user_cookie, i);
      CHECK(event.dto.ep == eps[0] || event.dto.ep == eps[1]);
      of_first += event.dto.ep == eps[0];
    }
    CHECK_EQUAL(rig.count().outstanding, 0);
  }
  CHECK_EQUAL(of_first, 3 * kPlaces / 2);
}

// A device that cannot resize its queue keeps the length of its creation.
void srq_resize__up_to_the_length_of_the_device() {
  fake_device::reset();
  fake_device::state.cannot_resize = true;
  SharedRig rig;
  std::lock_guard guard(control_mutex());
  CHECK(rig.srq->resize(kPlaces / 2).has_value());
  CHECK(rig.srq->resize(kPlaces).has_value());
  const auto longer = rig.srq->resize(kPlaces + 1);
  CHECK(!longer && longer.error().type == Type::kModelNotSupported);
  CHECK_EQUAL(rig.srq->attr().max_recv_dtos, kPlaces);
}

// Fills the SRQ. Returns the EVD of its events.
Evd& fill_and_watch(SharedRig& rig) {
  for (uint64_t i = 0; i < kPlaces; ++i) CHECK(rig.post(i));
  CHECK(rig.ia.get().create_async_evd(8).has_value());
  return *rig.ia.get().async_evd();
}

// The device's report of the former watermark is on its way when the program sets another one.
void srq_set_low_watermark__one_event_for_each() {
  fake_device::reset();
  fake_device::state.holds = true;
  SharedRig rig;
  Evd& async = fill_and_watch(rig);
  std::lock_guard guard(control_mutex());
  Event event;
  const auto report = [&] {
    fake_device::reach_limit(*rig.srq);
    ConnectionManager::instance().serve_device_events();
  };
  CHECK(rig.srq->set_low_watermark(kPlaces).has_value());
  fake_device::reach_limit(*rig.srq);
  CHECK(rig.srq->set_low_watermark(1).has_value());
  CHECK(!take_event(async, event));
  report();
  CHECK(take_event(async, event).has_value());
  report();
  CHECK(!take_event(async, event));
  CHECK(rig.srq->set_low_watermark(kPlaces).has_value());
  fake_device::reach_limit(*rig.srq);
  CHECK(rig.srq->set_low_watermark(0).has_value());
  report();
  CHECK(!take_event(async, event));
}

// The report of the former watermark, which still counts, is on its way.
void srq_set_low_watermark__refused_by_the_device__the_former_event_comes() {
  fake_device::reset();
  fake_device::state.holds = true;
  SharedRig rig;
  Evd& async = fill_and_watch(rig);
  std::lock_guard guard(control_mutex());
  Event event;
  CHECK(rig.srq->set_low_watermark(kPlaces).has_value());
  fake_device::reach_limit(*rig.srq);
  fake_device::state.cannot_limit = true;
  CHECK(!rig.srq->set_low_watermark(1).has_value());
  CHECK(take_event(async, event).has_value());
  CHECK(!rig.srq->set_low_watermark(1).has_value());
  CHECK(!take_event(async, event));
}

void srq__places_of_a_freed_ep() {
  fake_device::reset();
  SharedRig rig;
  for (int round = 0; round < 3; ++round) {
    Ep& ep = rig.ia.connected_ep({.recv = &rig.ia.evd(16)}, {}, rig.srq);
    for (uint64_t i = 0; i < kPlaces; ++i) CHECK(rig.post(i));
    std::lock_guard guard(control_mutex());
    CHECK(Ep::free(ep).has_value());
    CHECK_EQUAL(rig.srq->count().outstanding, 0);
  }
}

// A peer sends until the connection ends, and the device drops what the queue pair leaves behind.
void srq__places_of_messages_at_the_end_of_an_ep() {
  fake_device::reset();
  fake_device::state.cleans_cqs = true;
  SharedRig rig;
  Ep& ep = rig.ia.connected_ep({.recv = &rig.ia.evd(16)}, {}, rig.srq);
  fake_device::state.in_disconnect = [&] { CHECK(rig.post(1)); };
  std::lock_guard guard(control_mutex());
  CHECK(Ep::free(ep).has_value());
  CHECK(!fake_device::state.in_disconnect);
  CHECK_EQUAL(rig.srq->count().outstanding, 0);
}

// A CNO learns of flushed requests also if it was not there when they were flushed.
void flush__while_the_evd_is_disabled__triggers_the_cno_afterwards() {
  become_siw();
  Rig rig;
  Cno& cno = rig.ia.cno();
  std::lock_guard guard(control_mutex());
  CHECK(rig.recv.set_cno(&cno).has_value());
  CHECK(rig.ep.post_recv({&kSegment, 1}, 1, 0).has_value());
  fake_device::state.never_flushes = true;
  CHECK(rig.recv.set_enabled(false).has_value());
  CHECK(rig.ep.disconnect(true).has_value());
  CHECK(rig.recv.set_enabled(true).has_value());
  const auto triggered = cno.notifier()->take();
  CHECK(triggered && *triggered == &rig.recv);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(ep_attr__segments_of_reads),
      TEST_IN_CHILD(post_fast__a_refused_request_leaves_its_place),
      TEST_IN_CHILD(post__suppressed_ones_without_end),
      TEST_IN_CHILD(post__suppressed_ones_of_many_eps_fit_into_the_cq),
      TEST_IN_CHILD(post_recv__suppressed_ones_without_end),
      TEST_IN_CHILD(post__suppressed_ones_that_nobody_completes),
      TEST_IN_CHILD(completion__an_error_breaks_the_connection),
      TEST_IN_CHILD(completion__a_flushed_receive_breaks_the_connection_a_little_later),
      TEST_IN_CHILD(post__copies_only_from_regions_of_its_zone),
      TEST_IN_CHILD(post__copies_from_the_last_region_without_asking),
      TEST_IN_CHILD(post__copies_nothing_from_a_zero_based_region),
      TEST_IN_CHILD(post__copies_nothing_from_a_freed_region),
      TEST_IN_CHILD(post__copies_nothing_from_its_former_zone),
      TEST_IN_CHILD(post__copies_no_more_than_the_environment_allows),
      TEST_IN_CHILD(post_recv__on_a_disconnected_ep),
      TEST_IN_CHILD(flush__the_provider_was_faster_than_the_device),
      TEST_IN_CHILD(flush__a_request_on_a_disconnected_ep),
      TEST_IN_CHILD(flush__more_requests_than_the_evd_can_hold),
      TEST_IN_CHILD(ep_free__its_flushed_requests_bring_no_event),
      TEST_IN_CHILD(srq__each_place_is_free_after_its_event),
      TEST_IN_CHILD(srq_resize__up_to_the_length_of_the_device),
      TEST_IN_CHILD(srq_set_low_watermark__one_event_for_each),
      TEST_IN_CHILD(srq_set_low_watermark__refused_by_the_device__the_former_event_comes),
      TEST_IN_CHILD(srq__places_of_a_freed_ep),
      TEST_IN_CHILD(srq__places_of_messages_at_the_end_of_an_ep),
      TEST_IN_CHILD(flush__while_the_evd_is_disabled__triggers_the_cno_afterwards),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
