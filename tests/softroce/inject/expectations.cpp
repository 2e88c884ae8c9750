// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The consumer's results for each failure. Rows for the function in which the call failed come before those for any
// function; of the remaining rows, one must match.
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "tests/softroce/inject/run.hpp"

namespace dapple::inject {
namespace {

#define MEMORY "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_MEMORY"
#define DEVICE "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_DEVICE"
#define THREAD "a thread"
#define BROKEN_CQ "dat_evd_wait: DAT_INTERNAL_ERROR"
#define BROKEN_CQ_DEQUEUED "dat_evd_dequeue: DAT_INTERNAL_ERROR"

constexpr int kAny = 0;

struct Row {
  const char* call;
  int error;          // kAny: all calls that have no row of their own
  const char* where;  // null: any function
  const char* outcome;
};

constexpr Row kRows[] = {
    // Resources that have run out.
    {"malloc", ENOMEM, nullptr, MEMORY},
    {"realloc", ENOMEM, nullptr, MEMORY},
    // No EP or CR can be made for a request: the request is dropped, and its sender gets an event.
    {"malloc", ENOMEM, THREAD, "event NON_PEER_REJECTED"},
    // A provider that could not make its tables registers nothing, and dat_provider_init cannot report why.
    {"malloc", ENOMEM, "dat_ia_open" FIRST_USE, MEMORY},
    {"malloc", ENOMEM, "dat_ia_open" FIRST_USE, "DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED"},
    {"malloc", ENOMEM, "dat_ia_open" FIRST_USE, "success"},  // the C++ runtime's reserve for exceptions
    // dat.conf, which the next call reads again.
    {"open", EMFILE, "dat_registry_list_providers", MEMORY},
    {"eventfd", EMFILE, nullptr, DEVICE},
    {"eventfd", ENOMEM, nullptr, MEMORY},
    {"epoll_create1", EMFILE, nullptr, DEVICE},
    {"epoll_create1", ENOMEM, nullptr, MEMORY},
    {"epoll_ctl", ENOMEM, nullptr, MEMORY},
    {"epoll_ctl", ENOSPC, nullptr, DEVICE},
    {"getifaddrs", ENOMEM, nullptr, MEMORY},
    {"getifaddrs", EMFILE, nullptr, DEVICE},
    {"getifaddrs", EMFILE, nullptr, MEMORY},  // looking for ports
    {"pthread_create", EAGAIN, "dat_ia_open", "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_TEP"},
    {"pthread_create", EAGAIN, nullptr, "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_ERROR_HANDLER"},
    {"open", EMFILE, nullptr, DEVICE},
    // Looking for ports.
    {"open", EMFILE, "dat_ia_open", MEMORY},
    {"open", EMFILE, "dat_registry_providers_related", MEMORY},
    // The coherence that a file would report is then unknown, which is no error.
    {"open", EMFILE, "dat_ia_open", "success"},
    {"fcntl", EIO, nullptr, "DAT_INTERNAL_ERROR"},

    // A signal only ends waits in the consumer's threads.
    {"ppoll", EINTR, nullptr, "DAT_INTERRUPTED_CALL"},
    {"ppoll", ENOMEM, nullptr, "DAT_INTERNAL_ERROR"},
    {"ppoll", kAny, THREAD, "success"},
    {"poll", EINTR, THREAD, "success"},
    {"epoll_wait", EINTR, nullptr, "success"},
    {"read", EINTR, nullptr, "success"},
    {"open", EINTR, nullptr, "success"},

    // Objects that the device makes, or does not release.
    {"ibv_query_device", ENOMEM, nullptr, MEMORY},
    {"ibv_query_device", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_query_port", ENOMEM, nullptr, MEMORY},
    {"ibv_query_port", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_alloc_pd", ENOMEM, nullptr, MEMORY},
    {"ibv_dealloc_pd", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_dealloc_pd", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_reg_mr", ENOMEM, nullptr, MEMORY},
    {"ibv_reg_mr_iova", ENOMEM, nullptr, MEMORY},
    {"ibv_reg_mr_iova2", ENOMEM, nullptr, MEMORY},
    // Registering read-only memory is tried again without the right to bind windows.
    {"ibv_reg_mr", EFAULT, nullptr, "DAT_INVALID_PARAMETER DAT_INVALID_ARG3"},
    {"ibv_reg_mr_iova", EFAULT, nullptr, "DAT_INVALID_PARAMETER DAT_INVALID_ARG3"},
    {"ibv_reg_mr_iova2", EFAULT, nullptr, "DAT_INVALID_PARAMETER DAT_INVALID_ARG3"},
    {"ibv_reg_mr", EFAULT, nullptr, "success"},
    {"ibv_reg_mr_iova", EFAULT, nullptr, "success"},
    {"ibv_reg_mr_iova2", EFAULT, nullptr, "success"},
    {"ibv_dereg_mr", EBUSY, nullptr, "DAT_INVALID_STATE DAT_INVALID_STATE_LMR_IN_USE"},
    {"ibv_dereg_mr", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_create_comp_channel", EMFILE, nullptr, DEVICE},
    {"ibv_create_comp_channel", ENOMEM, nullptr, MEMORY},
    {"ibv_create_cq", ENOMEM, nullptr, MEMORY},
    {"ibv_create_cq", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},
    {"ibv_resize_cq", ENOMEM, nullptr, MEMORY},
    {"ibv_resize_cq", EOPNOTSUPP, nullptr, "DAT_MODEL_NOT_SUPPORTED"},
    {"ibv_resize_cq", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},
    {"ibv_destroy_cq", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_destroy_cq", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    // The IA's own objects, which nobody else can free: the call is tried again at once.
    {"ibv_destroy_cq", kAny, "dat_ia_close", "success"},
    {"ibv_create_qp", ENOMEM, nullptr, MEMORY},
    {"ibv_create_qp", EINVAL, nullptr, "success"},  // tried again without inline data
    {"ibv_modify_qp", ENOMEM, nullptr, MEMORY},
    {"ibv_modify_qp", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_destroy_qp", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_destroy_qp", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_create_srq", ENOMEM, nullptr, MEMORY},
    {"ibv_modify_srq", ENOMEM, nullptr, MEMORY},
    {"ibv_modify_srq", EOPNOTSUPP, nullptr, "DAT_MODEL_NOT_SUPPORTED"},
    {"ibv_destroy_srq", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_destroy_srq", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_alloc_mw", ENOMEM, nullptr, MEMORY},
    {"ibv_alloc_mw", ENOMEM, "dat_ep_reset", "success"},  // asked for again when needed
    {"ibv_dealloc_mw", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_dealloc_mw", EIO, nullptr, "DAT_INTERNAL_ERROR"},

    // Posts. DAT has no subtype for a full queue.
    {"ibv_post_send", ENOMEM, nullptr, "DAT_INSUFFICIENT_RESOURCES"},
    {"ibv_post_send", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},
    {"ibv_post_recv", ENOMEM, nullptr, "DAT_INSUFFICIENT_RESOURCES"},
    {"ibv_post_recv", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},
    {"ibv_post_srq_recv", ENOMEM, nullptr, "DAT_INSUFFICIENT_RESOURCES"},
    {"ibv_post_srq_recv", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},
    {"ibv_bind_mw", ENOMEM, nullptr, "DAT_INSUFFICIENT_RESOURCES"},
    {"ibv_bind_mw", EINVAL, nullptr, "DAT_INVALID_PARAMETER"},

    // A CQ that cannot be polled or armed stays broken. Its EVD reports that to the next waiter, or never if it is
    // freed first.
    {"ibv_poll_cq", EIO, nullptr, BROKEN_CQ},
    {"ibv_poll_cq", EIO, nullptr, BROKEN_CQ_DEQUEUED},
    {"ibv_poll_cq", EIO, "dat_evd_wait", "DAT_INTERNAL_ERROR; lasting: DAT_INTERNAL_ERROR"},
    {"ibv_poll_cq", EIO, "dat_evd_wait", "success"},
    {"ibv_poll_cq", EIO, "dat_ep_disconnect", "success"},
    {"ibv_poll_cq", EIO, "dat_ep_free", "success"},
    {"ibv_poll_cq", EIO, "dat_ep_reset", "success"},
    {"ibv_req_notify_cq", ENOMEM, nullptr, BROKEN_CQ},
    {"ibv_req_notify_cq", ENOMEM, nullptr, BROKEN_CQ_DEQUEUED},
    {"ibv_req_notify_cq", ENOMEM, "dat_evd_wait", "DAT_INTERNAL_ERROR; lasting: DAT_INTERNAL_ERROR"},
    {"ibv_req_notify_cq", ENOMEM, "dat_evd_wait", "success"},
    // The same. But a completion that the channel has announced is taken first, if it is there.
    {"ibv_get_cq_event", EIO, nullptr, "success"},
    {"ibv_get_cq_event", EIO, nullptr, BROKEN_CQ},
    {"ibv_get_cq_event", EIO, nullptr, BROKEN_CQ_DEQUEUED},
    {"ibv_get_cq_event", EIO, "dat_evd_wait", "DAT_INTERNAL_ERROR; lasting: DAT_INTERNAL_ERROR"},
    // A device whose events cannot be read is gone; without memory, the next look reads them.
    {"ibv_get_async_event", EIO, THREAD, "event IA_CATASTROPHIC"},
    {"ibv_get_async_event", EIO, THREAD, "success"},  // the IA was closed before anyone looked
    {"ibv_get_async_event", ENOMEM, THREAD, "success"},
    {"ibv_get_async_event", EIO, "dat_srq_set_lw", "event IA_CATASTROPHIC"},
    {"ibv_get_async_event", ENOMEM, "dat_srq_set_lw", "success"},

    // Connections.
    {"rdma_create_event_channel", EMFILE, nullptr, DEVICE},
    {"rdma_create_event_channel", ENODEV, nullptr, "DAT_INVALID_ADDRESS DAT_INVALID_ADDRESS_UNSUPPORTED"},
    {"rdma_get_cm_event", ENOMEM, THREAD, "success"},  // the channel stays readable
    {"rdma_create_id", ENOMEM, nullptr, MEMORY},
    {"rdma_bind_addr", ENOMEM, nullptr, MEMORY},
    {"rdma_bind_addr", ENODEV, nullptr, "DAT_CONN_QUAL_UNAVAILABLE"},
    {"rdma_bind_addr", ENODEV, "dat_ia_open", "DAT_INVALID_ADDRESS DAT_INVALID_ADDRESS_UNSUPPORTED"},
    {"rdma_bind_addr", ENODEV, "dat_registry_providers_related", "success"},  // belongs to no device: not related
    {"rdma_bind_addr", EADDRINUSE, nullptr, "DAT_CONN_QUAL_IN_USE"},
    {"rdma_bind_addr", EADDRINUSE, "dat_csp_create", "DAT_PORT_IN_USE"},
    {"rdma_bind_addr", EADDRINUSE, "dat_ia_open", "DAT_INVALID_ADDRESS DAT_INVALID_ADDRESS_UNSUPPORTED"},
    {"rdma_bind_addr", EADDRINUSE, "dat_registry_providers_related", "success"},
    // If this port is used for datagrams, another port is tried.
    {"rdma_bind_addr", EADDRINUSE, "dat_psp_create_any", "DAT_CONN_QUAL_IN_USE"},
    {"rdma_bind_addr", EADDRINUSE, "dat_psp_create_any", "success"},
    {"rdma_listen", EADDRINUSE, "dat_psp_create_any", "DAT_CONN_QUAL_IN_USE"},
    {"rdma_listen", EADDRINUSE, "dat_psp_create_any", "success"},
    {"rdma_listen", ENOMEM, nullptr, MEMORY},
    {"rdma_listen", EADDRINUSE, nullptr, "DAT_CONN_QUAL_IN_USE"},
    {"rdma_listen", EADDRINUSE, "dat_csp_create", "DAT_PORT_IN_USE"},
    {"rdma_resolve_addr", ENOMEM, nullptr, MEMORY},
    {"rdma_resolve_addr", ENETUNREACH, nullptr, "DAT_INVALID_ADDRESS DAT_INVALID_ADDRESS_UNREACHABLE"},
    {"rdma_resolve_route", ENOMEM, THREAD, "event UNREACHABLE"},
    {"rdma_connect", ENOMEM, THREAD, "event UNREACHABLE"},
    {"rdma_establish", ENOMEM, THREAD, "event UNREACHABLE"},
    {"rdma_init_qp_attr", ENOMEM, THREAD, "event UNREACHABLE"},
    {"rdma_init_qp_attr", ENOMEM, "dat_cr_accept", "event ACCEPT_COMPLETION_ERROR"},
    {"ibv_modify_qp", kAny, "dat_cr_accept", "event ACCEPT_COMPLETION_ERROR"},
    {"ibv_modify_qp", kAny, THREAD, "event UNREACHABLE"},
    {"rdma_accept", ENOMEM, "dat_cr_accept", "event ACCEPT_COMPLETION_ERROR"},
    {"rdma_reject", ENOMEM, nullptr, MEMORY},
    // The end of a connection: the second attempt moves the queue pair to the error state, and the id is destroyed if
    // nothing else informs the peer.
    {"ibv_modify_qp", kAny, THREAD, "success"},
    // The peer's disconnect then counts as such.
    {"ibv_query_qp", kAny, THREAD, "success"},
    {"ibv_modify_qp", kAny, "dat_ep_disconnect", "success"},
    {"ibv_modify_qp", kAny, "dat_ep_free", "success"},
    {"ibv_modify_qp", kAny, "dat_ep_post_recv", "success"},
    {"rdma_disconnect", ENOMEM, nullptr, "success"},
    // Datagrams: each end has a working queue pair, and an event reports a failed exchange.
    {"ibv_create_ah", kAny, THREAD, "event UD_ERROR"},
    {"ibv_create_ah", kAny, THREAD, "event UD_REJECT"},  // failure of the way back: the peer may notice first
    {"_ibv_query_gid_ex", kAny, THREAD, "event UD_ERROR"},
    {"_ibv_query_gid_ex", kAny, THREAD, "event UD_REJECT"},
    {"ibv_destroy_ah", EBUSY, nullptr, "DAT_INVALID_STATE"},
    {"ibv_destroy_ah", EIO, nullptr, "DAT_INTERNAL_ERROR"},
    {"ibv_destroy_ah", kAny, "dat_ep_free", "success"},  // tried again at once
    {"rdma_resolve_addr", kAny, "dat_cr_accept", "event UD_ERROR"},
    {"rdma_resolve_addr", kAny, "dat_cr_accept", "event UD_REJECT"},
    {"rdma_create_id", ENOMEM, "dat_cr_accept", "event UD_ERROR"},
    {"rdma_create_id", ENOMEM, "dat_cr_accept", "event UD_REJECT"},
    {"rdma_resolve_route", ENOMEM, THREAD, "event UD_ERROR"},
    {"rdma_resolve_route", ENOMEM, THREAD, "event UD_REJECT"},
    {"rdma_connect", ENOMEM, THREAD, "event UD_ERROR"},
    {"rdma_accept", ENOMEM, THREAD, "event UD_ERROR"},
    {"rdma_accept", ENOMEM, THREAD, "event UD_REJECT"},
    {"malloc", ENOMEM, THREAD, "event UD_ERROR"},
    {"malloc", ENOMEM, THREAD, "event UD_REJECT"},
    {"malloc", ENOMEM, THREAD, "success"},  // a reply that is not remembered
    // If this fails, forks are the consumer's responsibility; an address that cannot be read is shown as none.
    {"ibv_fork_init", kAny, nullptr, "success"},
    {"ibv_query_gid", kAny, nullptr, "success"},
    // The traffic class is only a wish.
    {"rdma_set_option", ENOMEM, nullptr, "success"},
    {"rdma_notify", ENOMEM, THREAD, "success"},
};

bool concerns(const Row& row, const char* call, int error, const char* where) {
  if (std::strcmp(row.call, call) != 0 || (row.error != kAny && row.error != error)) return false;
  return where ? row.where && std::strcmp(row.where, where) == 0 : !row.where;
}

}  // namespace

std::string expected_outcomes(const char* call, int error, const std::string& where) {
  std::string outcomes;
  for (const char* of : {where.c_str(), static_cast<const char*>(nullptr)}) {
    for (const Row& row : kRows) {
      if (concerns(row, call, error, of)) outcomes += std::string(outcomes.empty() ? "" : " | ") + row.outcome;
    }
    if (!outcomes.empty()) break;
  }
  return outcomes;
}

bool is_expected(const char* call, int error, const std::string& where, const std::string& outcome) {
  const std::string all = " | " + expected_outcomes(call, error, where) + " | ";
  return all.find(" | " + outcome + " | ") != std::string::npos;
}

}  // namespace dapple::inject
