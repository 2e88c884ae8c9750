// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// librdmacm's functions for an rdma_cm_id. The call of one with an id that the program has destroyed is reported, and
// fails.
#include "provider/preload/heap/ids.hpp"

#include <errno.h>

#include <atomic>

#include "provider/preload/heap/next.hpp"

struct ibv_pd;
struct ibv_qp_init_attr;
struct rdma_cm_id;
struct rdma_conn_param;
struct sockaddr;

using namespace dapple::heap;

// Those that return -1 with errno.
#define DAPPLE_ID_FUNCTIONS(X)                                                                             \
  X(bind_addr, (rdma_cm_id * id, sockaddr * address), (id, address))                                       \
  X(resolve_addr, (rdma_cm_id * id, sockaddr * from, sockaddr * to, int timeout), (id, from, to, timeout)) \
  X(resolve_route, (rdma_cm_id * id, int timeout), (id, timeout))                                          \
  X(create_qp, (rdma_cm_id * id, ibv_pd * pd, ibv_qp_init_attr * attr), (id, pd, attr))                    \
  X(connect, (rdma_cm_id * id, rdma_conn_param * parameters), (id, parameters))                            \
  X(listen, (rdma_cm_id * id, int backlog), (id, backlog))                                                 \
  X(accept, (rdma_cm_id * id, rdma_conn_param * parameters), (id, parameters))                             \
  X(disconnect, (rdma_cm_id * id), (id))

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

#define DAPPLE_NEXT(name, parameters, arguments) constinit Next<int parameters> next_##name("rdma_" #name);
DAPPLE_ID_FUNCTIONS(DAPPLE_NEXT)
#undef DAPPLE_NEXT

bool has_ended(const rdma_cm_id* id, const char* function) {
  const soft::IdWatcher* watcher = of_ids.load(std::memory_order_acquire);
  if (watcher == nullptr || !watcher->has_ended(id, function)) [[likely]]
    return false;
  errno = EINVAL;
  return true;
}

// The oldest one makes room.
void keep(rdma_cm_id* id, const soft::IdWatcher& watcher, const char* function) {
  const size_t place = kept_so_far.fetch_add(1, std::memory_order_relaxed) % kKept;
  void* oldest = kept[place].exchange(id, std::memory_order_acq_rel);
  if (oldest != nullptr) watcher.given_back(oldest);
  watcher.ended(id, function);
  next_free.get()(oldest);
}

// Calls destroy(), in which librdmacm frees the id.
template <typename Destroy>
void end(rdma_cm_id* id, const soft::IdWatcher& watcher, const char* function, Destroy destroy) {
  ending_id = id;
  destroy();
  const bool is_kept = ending_id == nullptr;
  ending_id = nullptr;
  if (is_kept) keep(id, watcher, function);
}

}  // namespace

void watch_ids(const soft::IdWatcher& watcher) {
  of_ids.store(&watcher, std::memory_order_release);
}

}  // namespace dapple::heap

#pragma GCC visibility push(default)
extern "C" {

// The id begins librdmacm's structure, which librdmacm frees in this call.
int rdma_destroy_id(rdma_cm_id* id) noexcept {
  const dapple::soft::IdWatcher* watcher = of_ids.load(std::memory_order_acquire);
  // rdma_destroy_ep() may call this.
  if (watcher == nullptr || (id != nullptr && id == ending_id)) return next_destroy_id.get()(id);
  if (has_ended(id, "rdma_destroy_id")) return -1;
  int result = 0;
  end(id, *watcher, "rdma_destroy_id", [&] { result = next_destroy_id.get()(id); });
  return result;
}

void rdma_destroy_ep(rdma_cm_id* id) noexcept {
  const dapple::soft::IdWatcher* watcher = of_ids.load(std::memory_order_acquire);
  if (watcher == nullptr) {
    next_destroy_ep.get()(id);
  } else if (!has_ended(id, "rdma_destroy_ep")) {
    end(id, *watcher, "rdma_destroy_ep", [&] { next_destroy_ep.get()(id); });
  }
}

#define DAPPLE_FUNCTION(name, parameters, arguments)                        \
  int rdma_##name parameters noexcept {                                     \
    return has_ended(id, "rdma_" #name) ? -1 : next_##name.get() arguments; \
  }
DAPPLE_ID_FUNCTIONS(DAPPLE_FUNCTION)
#undef DAPPLE_FUNCTION

void rdma_destroy_qp(rdma_cm_id* id) noexcept {
  if (!has_ended(id, "rdma_destroy_qp")) next_destroy_qp.get()(id);
}

}  // extern "C"
#pragma GCC visibility pop
