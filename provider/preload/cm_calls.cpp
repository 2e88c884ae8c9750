// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of librdmacm that return an error. In programs without --explain and --check they only pass on the
// call.
#include "provider/preload/cm_calls.hpp"

#include <dlfcn.h>
#include <rdma/rdma_cma.h>

#include "provider/common/cm_calls.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/preload/cm_answers.hpp"
#include "provider/preload/cm_reasons.hpp"
#include "provider/preload/real_dlsym.hpp"
#include "provider/preload/real_function.hpp"

using dapple::provider::CmCalls;
using dapple::provider::CmCallWatcher;

#pragma GCC visibility push(default)
extern "C" {
extern CmCalls dapple_cm_calls;
constinit CmCalls dapple_cm_calls;
}
#pragma GCC visibility pop

namespace dapple::preload {
namespace {

constinit thread_local int depth = 0;

// A program that asks without waiting gets these, too.
bool is_no_failure(int error) {
  return error == 0 || error == EAGAIN || error == EINTR || error == EINPROGRESS;
}

const CmCallWatcher* watcher() {
  return dapple_cm_calls.watcher.load(std::memory_order_acquire);
}

}  // namespace

CmCall::CmCall(const char* function) : function_(function) {
  const CmCallWatcher* present = watcher();
  is_watched_ = depth++ == 0 && present != nullptr;
  if (is_watched_) reported_ = present->reported();
}

CmCall::~CmCall() {
  --depth;
}

// The first call of a program loads the plug-in, and the watcher comes during this call.
bool CmCall::is_unexplained(int error) const {
  const CmCallWatcher* present = watcher();
  return depth == 1 && present != nullptr && !is_no_failure(error) && present->reported() == reported_;
}

void CmCall::report(int error, const char* reason) const {
  const ErrnoGuard keep;
  watcher()->failed(function_, error, reason);
}

void CmCall::look_for_qp(const rdma_cm_id& id, const rdma_conn_param* parameters) const {
  const bool is_connected = id.qp_type == IBV_QPT_RC || id.qp_type == IBV_QPT_UC;
  const CmCallWatcher* present = watcher();
  if (!is_watched_ || present == nullptr || !is_connected || id.ps == RDMA_PS_UDP || id.ps == RDMA_PS_IPOIB) return;
  if (id.qp == nullptr && parameters != nullptr && parameters->qp_num == 0) present->without_qp(function_);
}

void CmCall::look_for_end(const rdma_cm_event& event) const {
  const CmCallWatcher* present = watcher();
  if (!is_watched_ || present == nullptr || event.event != RDMA_CM_EVENT_DISCONNECTED) return;
  if (event.id->qp != nullptr) present->disconnected(event.id->qp);
}

void CmCall::report_address(const sockaddr* address, bool needs_infiniband) const {
  if (errno == EINVAL && needs_infiniband) errno = ENODEV;
  if (is_unexplained(errno)) report(errno, reason_of_address(address));
}

void* next_cm_function(const char* name, const char* version, const void* caller) {
  if (void* next = real_dlsym()(RTLD_NEXT, name)) return next;
  if (void* found = real_function("librdmacm.so.1", name, version, caller)) return found;
  errno = ENOSYS;
  return nullptr;
}

}  // namespace dapple::preload

using namespace dapple::preload;

// Each function returns 0, or -1 with errno. The last argument is the reason of a failure that librdmacm decides.
#define DAPPLE_CM_FUNCTIONS(X)                                                                                       \
  X(create_id, "RDMACM_1.0", (rdma_event_channel * channel, rdma_cm_id * *id, void* context, rdma_port_space space), \
    (channel, id, context, space), kNoReason)                                                                        \
  X(create_ep, "RDMACM_1.0", (rdma_cm_id * *id, rdma_addrinfo * found, ibv_pd * pd, ibv_qp_init_attr * attr),        \
    (id, found, pd, attr), kNoReason)                                                                                \
  X(resolve_route, "RDMACM_1.0", (rdma_cm_id * id, int timeout), (id, timeout), kNoReason)                           \
  X(create_qp, "RDMACM_1.0", (rdma_cm_id * id, ibv_pd * pd, ibv_qp_init_attr * attr), (id, pd, attr),                \
    reason_of_qp(id, pd, attr))                                                                                      \
  X(create_qp_ex, "RDMACM_1.0", (rdma_cm_id * id, ibv_qp_init_attr_ex * attr), (id, attr), reason_of_qp(id, attr))   \
  X(create_srq, "RDMACM_1.0", (rdma_cm_id * id, ibv_pd * pd, ibv_srq_init_attr * attr), (id, pd, attr),              \
    reason_of_srq(id, pd))                                                                                           \
  X(create_srq_ex, "RDMACM_1.0", (rdma_cm_id * id, ibv_srq_init_attr_ex * attr), (id, attr),                         \
    reason_of_srq(id, nullptr))                                                                                      \
  X(listen, "RDMACM_1.0", (rdma_cm_id * id, int backlog), (id, backlog), kNoReason)                                  \
  X(get_request, "RDMACM_1.0", (rdma_cm_id * listener, rdma_cm_id * *id), (listener, id), reason_of_request(errno))  \
  X(notify, "RDMACM_1.0", (rdma_cm_id * id, ibv_event_type event), (id, event), kNoReason)                           \
  X(join_multicast, "RDMACM_1.0", (rdma_cm_id * id, sockaddr * address, void* context), (id, address, context),      \
    reason_of_address(address))                                                                                      \
  X(join_multicast_ex, "RDMACM_1.1", (rdma_cm_id * id, rdma_cm_join_mc_attr_ex * attr, void* context),               \
    (id, attr, context), kNoReason)                                                                                  \
  X(leave_multicast, "RDMACM_1.0", (rdma_cm_id * id, sockaddr * address), (id, address),                             \
    reason_of_group(address, errno))                                                                                 \
  X(set_option, "RDMACM_1.0", (rdma_cm_id * id, int level, int option, void* value, size_t size),                    \
    (id, level, option, value, size), kNoReason)                                                                     \
  X(migrate_id, "RDMACM_1.0", (rdma_cm_id * id, rdma_event_channel * channel), (id, channel), kMigrates)             \
  X(init_qp_attr, "RDMACM_1.2", (rdma_cm_id * id, ibv_qp_attr * attr, int* mask), (id, attr, mask), kNoReason)       \
  X(set_local_ece, "RDMACM_1.3", (rdma_cm_id * id, ibv_ece * ece), (id, ece), reason_of_ece(id, ece))                \
  X(get_remote_ece, "RDMACM_1.3", (rdma_cm_id * id, ibv_ece * ece), (id, ece), reason_of_ece(id, ece))

// Those that also answer an event of the id.
#define DAPPLE_CM_ANSWERS(X)                                                                              \
  X(disconnect, "RDMACM_1.0", (rdma_cm_id * id), (id), kNoReason)                                         \
  X(establish, "RDMACM_1.2", (rdma_cm_id * id), (id), kEstablishes)                                       \
  X(reject, "RDMACM_1.0", (rdma_cm_id * id, const void* data, uint8_t size), (id, data, size), kNoReason) \
  X(reject_ece, "RDMACM_1.3", (rdma_cm_id * id, const void* data, uint8_t size), (id, data, size), kNoReason)

#pragma GCC visibility push(default)
extern "C" {

#define DAPPLE_CM_CALL(name, version, parameters, arguments, reason, before) \
  int rdma_##name parameters {                                               \
    const auto next = DAPPLE_NEXT_CM(rdma_##name, version);                  \
    if (next == nullptr) return -1;                                          \
    before;                                                                  \
    const CmCall call("rdma_" #name);                                        \
    const int result = next arguments;                                       \
    const int error = result < 0 ? errno : result;                           \
    if (result != 0 && call.is_unexplained(error)) [[unlikely]]              \
      call.report(error, reason);                                            \
    return result;                                                           \
  }
#define DAPPLE_CM_FUNCTION(name, version, parameters, arguments, reason) \
  DAPPLE_CM_CALL(name, version, parameters, arguments, reason, )
DAPPLE_CM_FUNCTIONS(DAPPLE_CM_FUNCTION)
#undef DAPPLE_CM_FUNCTION
#define DAPPLE_CM_ANSWER(name, version, parameters, arguments, reason) \
  DAPPLE_CM_CALL(name, version, parameters, arguments, reason, note_answer(id))
DAPPLE_CM_ANSWERS(DAPPLE_CM_ANSWER)
#undef DAPPLE_CM_ANSWER
#undef DAPPLE_CM_CALL

#define DAPPLE_CM_CONNECTS(name, reason_of)                      \
  int rdma_##name(rdma_cm_id* id, rdma_conn_param* parameters) { \
    const auto next = DAPPLE_NEXT_CM(rdma_##name, "RDMACM_1.0"); \
    if (next == nullptr) return -1;                              \
    note_answer(id);                                             \
    const CmCall call("rdma_" #name);                            \
    const int result = next(id, parameters);                     \
    const int error = result < 0 ? errno : result;               \
    if (result == 0)                                             \
      call.look_for_qp(*id, parameters);                         \
    else if (call.is_unexplained(error))                         \
      call.report(error, reason_of(id, parameters));             \
    return result;                                               \
  }
DAPPLE_CM_CONNECTS(connect, reason_of_parameters)
DAPPLE_CM_CONNECTS(accept, reason_of_answer)
#undef DAPPLE_CM_CONNECTS

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  const auto next = DAPPLE_NEXT_CM(rdma_bind_addr, "RDMACM_1.0");
  if (next == nullptr) return -1;
  const CmCall call("rdma_bind_addr");
  const int result = next(id, address);
  if (result != 0) call.report_address(address, wants_infiniband(*id, address));
  return result;
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout) {
  const auto next = DAPPLE_NEXT_CM(rdma_resolve_addr, "RDMACM_1.0");
  if (next == nullptr) return -1;
  const CmCall call("rdma_resolve_addr");
  const int result = next(id, from, to, timeout);
  if (result != 0)
    call.report_address(to, wants_infiniband(*id, from == nullptr ? to : from) && to->sa_family == AF_IB);
  return result;
}

// Returns a code of getaddrinfo(3).
int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** found) {
  const auto next = DAPPLE_NEXT_CM(rdma_getaddrinfo, "RDMACM_1.0");
  if (next == nullptr) return -1;
  const CmCall call("rdma_getaddrinfo");
  const int result = next(node, service, hints, found);
  if (result != 0 && call.is_unexplained(result)) call.report(result, reason_of_name(result));
  return result;
}

rdma_event_channel* rdma_create_event_channel(void) {
  const auto next = DAPPLE_NEXT_CM(rdma_create_event_channel, "RDMACM_1.0");
  if (next == nullptr) return nullptr;
  const CmCall call("rdma_create_event_channel");
  rdma_event_channel* channel = next();
  if (channel == nullptr && call.is_unexplained(errno)) call.report(errno, kNoReason);
  return channel;
}

ibv_context** rdma_get_devices(int* count) {
  const auto next = DAPPLE_NEXT_CM(rdma_get_devices, "RDMACM_1.0");
  if (next == nullptr) return nullptr;
  const CmCall call("rdma_get_devices");
  ibv_context** devices = next(count);
  if (devices == nullptr && call.is_unexplained(errno)) call.report(errno, kNoReason);
  return devices;
}

}  // extern "C"
#pragma GCC visibility pop
