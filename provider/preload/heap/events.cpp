// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// librdmacm's events. The program gets a copy of each event in a page of its own. rdma_ack_cm_event() takes the rights
// of the page away, so a later access is reported.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>

#include "provider/preload/heap/ids.hpp"
#include "provider/preload/heap/next.hpp"
#include "provider/preload/heap/requests.hpp"

namespace dapple::heap {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 1024;

enum class State : uint8_t { kFree, kFilling, kGiven, kAcknowledged };

struct Page {
  std::atomic<State> state{State::kFree};
  rdma_cm_event* real = nullptr;  // librdmacm's
};

constinit Page pages[kPages] = {};
constinit std::atomic<char*> memory = nullptr;
constinit std::atomic<size_t> next_page = 0;
struct sigaction before;

constinit Next<int(rdma_event_channel*, rdma_cm_event**)> next_get_cm_event("rdma_get_cm_event");
constinit Next<int(rdma_cm_event*)> next_ack_cm_event("rdma_ack_cm_event");

char* place_of(const Page& page) {
  return memory.load(std::memory_order_acquire) + static_cast<size_t>(&page - pages) * kPage;
}

// The page at the address, or null.
Page* page_at(const void* address) {
  const char* begin = memory.load(std::memory_order_acquire);
  const auto* at = static_cast<const char*>(address);
  if (begin == nullptr || at < begin || at >= begin + kPages * kPage) return nullptr;
  return &pages[static_cast<size_t>(at - begin) / kPage];
}

uintptr_t place_of_access(const void* context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  // The access comes again, and ends the program.
  sigaction(number, &before, nullptr);
}

// The program goes on with the event as it was.
void on_access(int number, siginfo_t* info, void* context) {
  const Page* page = page_at(info->si_addr);
  if (page == nullptr || page->state.load(std::memory_order_acquire) != State::kAcknowledged) {
    return pass_on(number, info, context);
  }
  const int saved = errno;
  char* event = place_of(*page);
  next_mprotect.get()(event, kPage, PROT_READ | PROT_WRITE);
  id_watcher()->touched(event, place_of_access(context));
  errno = saved;
}

// Null if there is no memory.
char* mapped() {
  char* present = memory.load(std::memory_order_acquire);
  if (present != nullptr) return present;
  void* made =
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  if (!memory.compare_exchange_strong(present, static_cast<char*>(made))) {
    munmap(made, kPages * kPage);
    return present;
  }
  struct sigaction action = {};
  action.sa_sigaction = on_access;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  return static_cast<char*>(made);
}

// The page that was acknowledged longest ago, or null if the program has all of them.
Page* free_page(const soft::IdWatcher& watcher) {
  for (size_t i = 0; i < kPages; i++) {
    Page& page = pages[next_page.fetch_add(1, std::memory_order_relaxed) % kPages];
    State present = page.state.load(std::memory_order_acquire);
    if ((present != State::kFree && present != State::kAcknowledged) ||
        !page.state.compare_exchange_strong(present, State::kFilling)) {
      continue;
    }
    if (present == State::kAcknowledged) watcher.given_back(place_of(page));
    next_mprotect.get()(place_of(page), kPage, PROT_READ | PROT_WRITE);
    return &page;
  }
  return nullptr;
}

// The private data lies behind librdmacm's event. An event of a multicast group has a pointer of the program's there.
rdma_cm_event* copy_in(char* place, const rdma_cm_event& event) {
  static_assert(offsetof(rdma_conn_param, private_data_len) == offsetof(rdma_ud_param, private_data_len));
  static_assert(sizeof event + UINT8_MAX <= kPage);
  memset(place, 0, kPage);
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
  Page* page = free_page(*watcher);
  if (page == nullptr) return event;
  page->real = event;
  rdma_cm_event* copy = copy_in(place_of(*page), *event);
  page->state.store(State::kGiven, std::memory_order_release);
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
  Page* page = page_at(event);
  if (page == nullptr) return next_ack_cm_event.get()(event);
  if (has_ended(event, "rdma_ack_cm_event")) return -1;
  if (page->state.load(std::memory_order_acquire) != State::kGiven) {
    errno = EINVAL;
    return -1;
  }
  // Another thread may destroy the id as soon as librdmacm knows of this call.
  id_watcher()->ended(event, "rdma_ack_cm_event");
  rdma_cm_event* real = page->real;
  next_mprotect.get()(event, kPage, PROT_NONE);
  page->state.store(State::kAcknowledged, std::memory_order_release);
  return next_ack_cm_event.get()(real);
}

}  // extern "C"
#pragma GCC visibility pop
