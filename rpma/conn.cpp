// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Connections, except the functions that move data.
#include "rpma/conn.hpp"

#include <cerrno>
#include <memory>
#include <utility>

#include "ibverbs-glue/event_wait.hpp"
#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"

using namespace dapple::rpma;
using namespace dapple;

namespace {

rpma_conn_event event_of(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      return RPMA_CONN_ESTABLISHED;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return RPMA_CONN_CLOSED;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return RPMA_CONN_LOST;
    case RDMA_CM_EVENT_REJECTED:
      return RPMA_CONN_REJECTED;
    case RDMA_CM_EVENT_UNREACHABLE:
      return RPMA_CONN_UNREACHABLE;
    default:
      return RPMA_CONN_UNDEFINED;
  }
}

int refuse_unshared(const char* function) {
  return refuse(
      in_a_line(function), RPMA_E_NOT_SHARED_CHNL,
      "each CQ of the connection has a completion channel of its own.\nCall rpma_cq_wait() or rpma_cq_get_fd() "
      "with a CQ, or rpma_conn_cfg_set_compl_channel() before the connection is made.");
}

}  // namespace

RPMA_EXPORT int rpma_conn_get_event_fd(const rpma_conn* conn, int* fd) {
  if (!conn || !fd) return refuse_null(__func__, {NAMED(conn), NAMED(fd)});
  *fd = conn->link.events->fd;
  return 0;
}

RPMA_EXPORT int rpma_conn_next_event(rpma_conn* conn, rpma_conn_event* event) {
  if (!conn || !event) return refuse_null(__func__, {NAMED(conn), NAMED(event)});
  if (!verbs::wait_for_event(*conn->link.events)) return FAILED("poll", errno);
  const NoCancel whole;
  verbs::CmEvent found;
  if (!verbs::CmEvent::take(conn->link.events.get(), found)) {
    return errno == EAGAIN || errno == ENODATA ? RPMA_E_NO_EVENT : FAILED("rdma_get_cm_event", errno);
  }
  *event = event_of(found.type);
  if (*event == RPMA_CONN_UNDEFINED) {
    LOG(WARNING, "%s: %s", rpma_utils_conn_event_2str(*event), rdma_event_str(found.type));
    return refuse(in_a_line(__func__), RPMA_E_UNKNOWN,
                  "librdmacm's event is %s, for which librpma has no name.\nTake the next event.",
                  rdma_event_str(found.type));
  }
  // The peer has ended the connection: it is too late for a flush.
  if (*event != RPMA_CONN_ESTABLISHED) conn->unflushed.settle();
  PrivateData& data = conn->link.data;
  if (*event == RPMA_CONN_ESTABLISHED && data.size == 0) data.store(found);
  LOG(NOTICE, "%s", rpma_utils_conn_event_2str(*event));
  return 0;
}

RPMA_EXPORT int rpma_conn_get_private_data(const rpma_conn* conn, rpma_conn_private_data* pdata) {
  if (!conn || !pdata) return refuse_null(__func__, {NAMED(conn), NAMED(pdata)});
  *pdata = conn->link.data.view();
  return 0;
}

RPMA_EXPORT int rpma_conn_apply_remote_peer_cfg(rpma_conn* conn, const rpma_peer_cfg* pcfg) {
  if (!conn || !pcfg) return refuse_null(__func__, {NAMED(conn), NAMED(pcfg)});
  return rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &conn->direct_write_to_pmem);
}

RPMA_EXPORT int rpma_conn_get_qp_num(const rpma_conn* conn, uint32_t* qp_num) {
  if (!conn || !qp_num) return refuse_null(__func__, {NAMED(conn), NAMED(qp_num)});
  *qp_num = conn->qp->qp_num;
  return 0;
}

RPMA_EXPORT int rpma_conn_get_cq(const rpma_conn* conn, rpma_cq** cq_ptr) {
  if (!conn || !cq_ptr) return refuse_null(__func__, {NAMED(conn), NAMED(cq_ptr)});
  *cq_ptr = conn->link.cq.get();
  return 0;
}

RPMA_EXPORT int rpma_conn_get_rcq(const rpma_conn* conn, rpma_cq** rcq_ptr) {
  if (!conn || !rcq_ptr) return refuse_null(__func__, {NAMED(conn), NAMED(rcq_ptr)});
  *rcq_ptr = conn->link.rcq.get();
  return 0;
}

RPMA_EXPORT int rpma_conn_get_compl_fd(const rpma_conn* conn, int* fd) {
  if (!conn || !fd) return refuse_null(__func__, {NAMED(conn), NAMED(fd)});
  if (!conn->link.channel) return refuse_unshared(__func__);
  *fd = conn->link.channel->fd;
  return 0;
}

RPMA_EXPORT int rpma_conn_wait(rpma_conn* conn, [[maybe_unused]] int flags, rpma_cq** cq, bool* is_rcq) {
  if (!conn || !cq) return refuse_null(__func__, {NAMED(conn), NAMED(cq)});
  if (!conn->link.channel) return refuse_unshared(__func__);
  ibv_cq* source = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(conn->link.channel.get(), &source, &context)) return RPMA_E_NO_COMPLETION;
  const NoCancel whole;
  auto* const found = static_cast<rpma_cq*>(context);
  const bool of_recvs = found == conn->link.rcq.get();
  if (!of_recvs && found != conn->link.cq.get()) {
    LOG(ERROR, "a completion event of a CQ that is not this connection's");
    ibv_ack_cq_events(source, 1);
    return refuse(in_a_line(__func__), RPMA_E_UNKNOWN,
                  "the event is of a CQ that is not this connection's.\nLeave the channel to librpma.");
  }
  if (const int error = found->took_event()) return error;
  *cq = found;
  if (is_rcq) *is_rcq = of_recvs;
  return 0;
}

RPMA_EXPORT int rpma_conn_disconnect(rpma_conn* conn) {
  if (!conn) return refuse_null(__func__, {NAMED(conn)});
  const NoCancel whole;
  conn->unflushed.report(__func__, conn->qp);
  if (rdma_disconnect(conn->link.id.get())) return FAILED("rdma_disconnect", errno);
  LOG(NOTICE, "Requesting for disconnection");
  return 0;
}

RPMA_EXPORT int rpma_conn_delete(rpma_conn** conn_ptr) {
  if (!conn_ptr) return refuse_null(__func__, {NAMED(conn_ptr)});
  const NoCancel whole;
  const std::unique_ptr<rpma_conn> conn(std::exchange(*conn_ptr, nullptr));
  if (!conn) return 0;
  conn->unflushed.report(__func__, conn->qp);
  return conn->close();
}
