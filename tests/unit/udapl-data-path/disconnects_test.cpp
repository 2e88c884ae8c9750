// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path's notices to the connection manager's thread. That thread would also look when a time-out ends, so here
// it has no time-outs: without the notice it sleeps for ever.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <mutex>
#include <thread>

#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/endpoint/ep_post_fast.hpp"

using namespace dapple::udapl;

namespace {

std::atomic<uint32_t> managers_sleeps = 0;

// The system call, without the time-outs of the connection manager's thread.
int sleep_for(pollfd* fds, nfds_t count, const timespec* left, const sigset_t* signals) {
  timespec changing = left ? *left : timespec{};
  const bool is_manager = gettid() != getpid();
  if (is_manager) ++managers_sleeps;
  return static_cast<int>(
      syscall(SYS_ppoll, fds, count, left && !is_manager ? &changing : nullptr, signals, sizeof(uint64_t)));
}

}  // namespace

int ppoll(pollfd* fds, nfds_t count, const timespec* left, const sigset_t* signals) {
  return sleep_for(fds, count, left, signals);
}

// With _FORTIFY_SOURCE the compiler calls this function if it does not know the count.
extern "C" int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* left, const sigset_t* signals, size_t) {
  return sleep_for(fds, count, left, signals);
}

namespace {

constexpr ibv_sge kSegment{0x1000, 256, 1};
constexpr RemoteBuffer kRemote{0x1000, 4096, 7};
constexpr uint32_t kLong_us = 3'000'000;

// Returns when the manager's thread has served all that was there before the call. It may be on its way into a sleep
// that ends at once, so one new sleep is not enough.
void await_manager(Ia& ia) {
  for (int i = 0; i < 2; ++i) {
    const uint32_t before = managers_sleeps;
    {
      std::lock_guard guard(control_mutex());
      CHECK(ConnectionManager::instance().watch(ia.context()).has_value());  // wakes the thread
      ConnectionManager::instance().unwatch(ia.context());
    }
    while (managers_sleeps == before) std::this_thread::yield();
  }
}

struct Rig {
  explicit Rig(const EpAttr& attr = {}) : request(ia.evd(16)), ep(ia.connected_ep({.request = &request}, attr)) {
    fake_device::state.holds = true;
  }
  void post(uint32_t flags = 0) {
    if (flags) {
      CHECK(ep.post_rdma_write({&kSegment, 1}, 1, kRemote, flags).has_value());
    } else {
      CHECK_EQUAL(ep.post_request_fast<DtoOperation::kRdmaWrite>(1, &kSegment, 1, kRemote, 0).value_or(-1), 0);
    }
  }
  // A graceful disconnect, which waits for the posted requests.
  void begin_disconnect() {
    {
      std::lock_guard guard(control_mutex());
      CHECK(ep.disconnect(false).has_value());
    }
    await_manager(ia.get());
    CHECK(ep.state() == EpState::kDisconnectPending);
  }
  void complete_and_take() {
    fake_device::complete(ep.qp_num());
    Event event;
    CHECK(take_event(request, event).has_value());
  }
  bool gets(EventKind kind) {
    Event event;
    uint32_t more;
    return wait_for_event(*ep.evds().connect, kLong_us, 1, event, more).has_value() && event.kind == kind;
  }

  fake_device::Ia ia = (fake_device::reset(), fake_device::Ia(false));
  Evd& request;
  Ep& ep;
};

void disconnect__ends_with_the_last_completion() {
  Rig rig;
  rig.post();
  rig.begin_disconnect();
  rig.complete_and_take();
  CHECK(rig.gets(EventKind::kDisconnected));
}

void disconnect__ends_with_the_last_of_a_batch() {
  Rig rig;
  rig.post();
  rig.post();
  rig.begin_disconnect();
  rig.complete_and_take();
  CHECK(rig.gets(EventKind::kDisconnected));
}

void disconnect__ends_with_the_last_unusual_completion() {
  Rig rig({.request_completion_flags = kUnsignalled});
  rig.post(kUnsignalled);
  rig.begin_disconnect();
  rig.complete_and_take();
  CHECK(rig.gets(EventKind::kDisconnected));
}

void completion__an_error_is_noticed() {
  Rig rig;
  await_manager(rig.ia.get());  // it looks for an error when it has reported the connection
  rig.post();
  fake_device::fail(rig.ep.qp_num(), IBV_WC_REM_ACCESS_ERR);
  Event event;
  CHECK(take_event(rig.request, event).has_value());
  CHECK(rig.gets(EventKind::kBroken));
}

// The queue pair fails before the peer's answer arrives, and the thread has looked already.
void completion__an_error_before_the_connection_is_up() {
  fake_device::reset();
  fake_device::Ia ia(false);
  fake_device::state.holds = fake_device::state.unanswered = true;
  Evd& recv = ia.evd(16);
  Evd& connect = ia.evd(8, kEvdConnection);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Ep* ep = nullptr;
  {
    std::lock_guard guard(control_mutex());
    ep = Ep::create(ia.get(), &ia.pz(), {.recv = &recv, .connect = &connect}, {}).value();
    CHECK(ep->connect(reinterpret_cast<sockaddr*>(&peer), 1, Evd::kInfinite, {}).has_value());
  }
  CHECK(ep->post_recv({&kSegment, 1}, 1, 0).has_value());
  fake_device::fail(ep->qp_num(), IBV_WC_LOC_PROT_ERR);
  Event event;
  uint32_t more;
  CHECK(take_event(recv, event).has_value());
  await_manager(ia.get());
  fake_device::answer();
  for (const EventKind kind : {EventKind::kEstablished, EventKind::kBroken})
    CHECK(wait_for_event(connect, kLong_us, 1, event, more).has_value() && event.kind == kind);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(disconnect__ends_with_the_last_completion),
      TEST_IN_CHILD(disconnect__ends_with_the_last_of_a_batch),
      TEST_IN_CHILD(disconnect__ends_with_the_last_unusual_completion),
      TEST_IN_CHILD(completion__an_error_is_noticed),
      TEST_IN_CHILD(completion__an_error_before_the_connection_is_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
