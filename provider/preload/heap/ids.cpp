// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// librdmacm's functions for an rdma_cm_id. The call of one is reported, and fails, if the program has destroyed the id
// or its event channel.
#include "provider/preload/heap/ids.hpp"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <atomic>

#include "provider/preload/heap/next.hpp"
#include "provider/preload/heap/requests.hpp"

using namespace dapple::heap;

// Those that return -1 with errno.
#define DAPPLE_ID_FUNCTIONS(X)                                                                                        \
  X(bind_addr, (rdma_cm_id * id, sockaddr * address), (id, address))                                                  \
  X(resolve_addr, (rdma_cm_id * id, sockaddr * from, sockaddr * to, int timeout), (id, from, to, timeout))            \
  X(resolve_route, (rdma_cm_id * id, int timeout), (id, timeout))                                                     \
  X(create_qp, (rdma_cm_id * id, ibv_pd * pd, ibv_qp_init_attr * attr), (id, pd, attr))                               \
  X(connect, (rdma_cm_id * id, rdma_conn_param * parameters), (id, parameters))                                       \
  X(listen, (rdma_cm_id * id, int backlog), (id, backlog))                                                            \
  X(accept, (rdma_cm_id * id, rdma_conn_param * parameters), (id, parameters))                                        \
  X(disconnect, (rdma_cm_id * id), (id))                                                                              \
  X(establish, (rdma_cm_id * id), (id))                                                                               \
  X(reject_ece, (rdma_cm_id * id, const void* data, uint8_t size), (id, data, size))                                  \
  X(set_option, (rdma_cm_id * id, int level, int option, void* value, size_t size), (id, level, option, value, size)) \
  X(join_multicast, (rdma_cm_id * id, sockaddr * address, void* context), (id, address, context))                     \
  X(leave_multicast, (rdma_cm_id * id, sockaddr * address), (id, address))

namespace dapple::heap {

constinit thread_local void* ending_id = nullptr;

namespace {

constinit std::atomic<const soft::IdWatcher*> of_ids = nullptr;

constexpr size_t kKept = 256;
constinit std::atomic<void*> kept[kKept] = {};
constinit std::atomic<size_t> kept_so_far = 0;

constinit Next<int(rdma_cm_id*)> next_destroy_id("rdma_destroy_id");
constinit Next<void(rdma_cm_id*)> next_destroy_ep("rdma_destroy_ep");
constinit Next<void(rdma_cm_id*)> next_destroy_qp("rdma_destroy_qp");
constinit Next<void(rdma_event_channel*)> next_destroy_event_channel("rdma_destroy_event_channel");
constinit Next<int(rdma_cm_id*, const void*, uint8_t)> next_reject("rdma_reject");

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define DAPPLE_NEXT(name, parameters, arguments) constinit Next<int parameters> next_##name("rdma_" #name);
DAPPLE_ID_FUNCTIONS(DAPPLE_NEXT)
#undef DAPPLE_NEXT

// With its channel an id loses its descriptor.
bool is_dead(const rdma_cm_id* id, const char* function) {
  return has_ended(id, function) || (id != nullptr && id_watcher() != nullptr && has_ended(id->channel, function));
}

}  // namespace

// The oldest one makes room.
void keep(void* object, const soft::IdWatcher& watcher, const char* function) {
  const size_t place = kept_so_far.fetch_add(1, std::memory_order_relaxed) % kKept;
  void* oldest = kept[place].exchange(object, std::memory_order_acq_rel);
  if (oldest != nullptr) watcher.given_back(oldest);
  watcher.ended(object, function);
  next_free.get()(oldest);
}

void watch_ids(const soft::IdWatcher& watcher) {
  of_ids.store(&watcher, std::memory_order_release);
}

const soft::IdWatcher* id_watcher() {
  return of_ids.load(std::memory_order_acquire);
}

bool has_ended(const void* object, const char* function) {
  const soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr || !watcher->has_ended(object, function)) [[likely]]
    return false;
  errno = EINVAL;
  return true;
}

}  // namespace dapple::heap

#pragma GCC visibility push(default)
extern "C" {

// The id begins librdmacm's structure, which librdmacm frees in this call.
int rdma_destroy_id(rdma_cm_id* id) {
  const dapple::soft::IdWatcher* watcher = id_watcher();
  // rdma_destroy_ep() may call this.
  if (watcher == nullptr || (id != nullptr && id == ending_id)) return next_destroy_id.get()(id);
  if (is_dead(id, "rdma_destroy_id")) return -1;
  forget_request(id);
  int result = 0;
  end(id, *watcher, "rdma_destroy_id", [&] { result = next_destroy_id.get()(id); });
  return result;
}

void rdma_destroy_ep(rdma_cm_id* id) {
  const dapple::soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr) return next_destroy_ep.get()(id);
  if (is_dead(id, "rdma_destroy_ep")) return;
  forget_request(id);
  end(id, *watcher, "rdma_destroy_ep", [&] { next_destroy_ep.get()(id); });
}

// librdmacm destroys the channel of a synchronous id itself, while it destroys the id.
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  const dapple::soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr || ending_id != nullptr) return next_destroy_event_channel.get()(channel);
  if (has_ended(channel, "rdma_destroy_event_channel")) return;
  end(channel, *watcher, "rdma_destroy_event_channel", [&] { next_destroy_event_channel.get()(channel); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): declarations and calls
#define DAPPLE_FUNCTION(name, parameters, arguments)                      \
  int rdma_##name parameters {                                            \
    return is_dead(id, "rdma_" #name) ? -1 : next_##name.get() arguments; \
  }
// NOLINTEND(bugprone-macro-parentheses)
DAPPLE_ID_FUNCTIONS(DAPPLE_FUNCTION)
#undef DAPPLE_FUNCTION

int rdma_reject(rdma_cm_id* id, const void* data, uint8_t size) {
  if (is_dead(id, "rdma_reject")) return -1;
  const int result = next_reject.get()(id, data, size);
  if (result == 0) note_end_of_connection(id);
  return result;
}

// This needs no channel.
void rdma_destroy_qp(rdma_cm_id* id) {
  if (!has_ended(id, "rdma_destroy_qp")) next_destroy_qp.get()(id);
}

}  // extern "C"
#pragma GCC visibility pop
