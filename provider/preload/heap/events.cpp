// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// librdmacm's events. The program gets a copy of each event in pages of its own. rdma_ack_cm_event() takes the rights
// of these pages away, so a later access is reported.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "provider/common/fault.hpp"
#include "provider/preload/heap/event_places.hpp"
#include "provider/preload/heap/ids.hpp"
#include "provider/preload/heap/next.hpp"
#include "provider/preload/heap/requests.hpp"

namespace dapple::heap {
namespace {

// An event and its private data.
constexpr size_t kRoom = sizeof(rdma_cm_event) + UINT8_MAX;

enum class State : uint8_t { kFree, kFilling, kGiven, kAcknowledged };

struct Kept {
  std::atomic<State> state{State::kFree};
  rdma_cm_event* real = nullptr;  // librdmacm's
};

constinit Kept events[EventPlaces::kCount] = {};
constinit std::atomic<char*> memory = nullptr;
constinit std::atomic<size_t> next_event = 0;
constinit std::atomic<bool> has_complained = false;
struct sigaction before;

constinit Next<int(rdma_event_channel*, rdma_cm_event**)> next_get_cm_event("rdma_get_cm_event");
constinit Next<int(rdma_cm_event*)> next_ack_cm_event("rdma_ack_cm_event");

// arm64 and ppc64le have kernels with pages of 64 KiB.
EventPlaces places(char* begin = memory.load(std::memory_order_acquire)) {
  return {begin, static_cast<size_t>(sysconf(_SC_PAGESIZE)), kRoom};
}

char* place_of(const Kept& kept) {
  return places().at(static_cast<size_t>(&kept - events));
}

// The event at the address, or null.
Kept* kept_at(const void* address) {
  const std::optional<size_t> number = places().number_of(address);
  return number ? &events[*number] : nullptr;
}

// False if the system refuses; the first refusal is said. Signal handlers may call it.
bool protect(char* place, int rights) {
  static constexpr char kComplaint[] =
      "dapple: mprotect() of an event of librdmacm fails, so the check may miss a use of the event after "
      "rdma_ack_cm_event()\n";
  if (next_mprotect.get()(place, places().place_size(), rights) == 0) return true;
  if (!has_complained.exchange(true)) (void)!write(STDERR_FILENO, kComplaint, sizeof kComplaint - 1);
  return false;
}

// The program goes on with the event as it was.
void on_access(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const Kept* kept = kept_at(info->si_addr);
  const bool is_old = kept != nullptr && kept->state.load(std::memory_order_acquire) == State::kAcknowledged;
  if (is_old && protect(place_of(*kept), PROT_READ | PROT_WRITE)) {
    id_watcher()->touched(place_of(*kept), provider::interrupted_place(context));
    errno = saved;
    return;
  }
  errno = saved;
  provider::pass_on(before, number, info, context);
}

// Null if there is no memory.
char* mapped() {
  char* present = memory.load(std::memory_order_acquire);
  if (present != nullptr) return present;
  const size_t size = places().size();
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  if (!memory.compare_exchange_strong(present, static_cast<char*>(made))) {
    munmap(made, size);
    return present;
  }
  struct sigaction action = {};
  action.sa_sigaction = on_access;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  return static_cast<char*>(made);
}

// The place whose event was acknowledged longest ago, or null if the program has all of them.
Kept* free_place(const soft::IdWatcher& watcher) {
  for (size_t i = 0; i < EventPlaces::kCount; i++) {
    Kept& kept = events[next_event.fetch_add(1, std::memory_order_relaxed) % EventPlaces::kCount];
    State present = kept.state.load(std::memory_order_acquire);
    if ((present != State::kFree && present != State::kAcknowledged) ||
        !kept.state.compare_exchange_strong(present, State::kFilling)) {
      continue;
    }
    if (!protect(place_of(kept), PROT_READ | PROT_WRITE)) {
      kept.state.store(present, std::memory_order_release);
      return nullptr;
    }
    if (present == State::kAcknowledged) watcher.given_back(place_of(kept));
    return &kept;
  }
  return nullptr;
}

// The private data lies behind librdmacm's event. An event of a multicast group has a pointer of the program's there.
rdma_cm_event* copy_in(char* place, const rdma_cm_event& event) {
  static_assert(offsetof(rdma_conn_param, private_data_len) == offsetof(rdma_ud_param, private_data_len));
  memset(place, 0, kRoom);
  auto* copy = reinterpret_cast<rdma_cm_event*>(place);
  *copy = event;
  rdma_conn_param& parameters = copy->param.conn;
  const bool is_group = event.event == RDMA_CM_EVENT_MULTICAST_JOIN || event.event == RDMA_CM_EVENT_MULTICAST_ERROR;
  if (is_group || parameters.private_data == nullptr) return copy;
  memcpy(place + sizeof event, parameters.private_data, parameters.private_data_len);
  parameters.private_data = place + sizeof event;
  return copy;
}

// A copy of the event for the program, or the event itself if nobody watches.
rdma_cm_event* guarded(rdma_cm_event* event) {
  const soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr || mapped() == nullptr) return event;
  Kept* kept = free_place(*watcher);
  if (kept == nullptr) return event;
  kept->real = event;
  rdma_cm_event* copy = copy_in(place_of(*kept), *event);
  kept->state.store(State::kGiven, std::memory_order_release);
  return copy;
}

void note(const rdma_cm_event& event) {
  const soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr) return;
  switch (event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      note_request(event.id, event.listen_id);
      return watcher->requested(event.id);
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
      return note_end_of_connection(event.id);
    default:
      return;
  }
}

}  // namespace
}  // namespace dapple::heap

using namespace dapple::heap;

#pragma GCC visibility push(default)
extern "C" {

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  if (has_ended(channel, "rdma_get_cm_event")) return -1;
  const int result = next_get_cm_event.get()(channel, event);
  if (result != 0) return result;
  note(**event);
  *event = guarded(*event);
  return result;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  Kept* kept = kept_at(event);
  if (kept == nullptr) return next_ack_cm_event.get()(event);
  if (has_ended(event, "rdma_ack_cm_event")) return -1;
  if (kept->state.load(std::memory_order_acquire) != State::kGiven) {
    errno = EINVAL;
    return -1;
  }
  // Another thread may destroy the id as soon as librdmacm knows of this call.
  id_watcher()->ended(event, "rdma_ack_cm_event");
  rdma_cm_event* real = kept->real;
  protect(place_of(*kept), PROT_NONE);
  kept->state.store(State::kAcknowledged, std::memory_order_release);
  return next_ack_cm_event.get()(real);
}

}  // extern "C"
#pragma GCC visibility pop
