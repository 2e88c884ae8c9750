// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/address.hpp"
#include "rpma/cfg.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/conn.hpp"
#include "rpma/conn_req.hpp"
#include "rpma/memory/mr.hpp"
#include "rpma/post_refusals.hpp"
#include "rpma/srq.hpp"

using namespace dapple::rpma;
using dapple::verbs::CmId;

namespace dapple::rpma {

int make_request(const rpma_peer& peer, CmId id, const rpma_conn_cfg& cfg, bool passive,
                 std::unique_ptr<rpma_conn_req>& out) noexcept {
  std::unique_ptr<rpma_conn_req> made(new (std::nothrow) rpma_conn_req{peer, {}, passive});
  if (!made) return refuse_memory();
  made->link.id = std::move(id);
  const char* const function = passive ? "rpma_ep_next_conn_req" : "rpma_conn_req_new";
  if (const int error = made->link.build(peer, cfg, function)) return error;
  // The id of a peer's request has the listener's channel, which the request may outlive.
  if (const int error = made->link.migrate()) return error;
  out = std::move(made);
  return 0;
}

}  // namespace dapple::rpma

namespace {

// Makes the connection, complete except for the peer. Returns an RPMA_E_* or 0.
int make_connection(rpma_conn_req& request, std::unique_ptr<rpma_conn>& out) {
  std::unique_ptr<rpma_conn> made(new (std::nothrow) rpma_conn{request.peer, {}, {}});
  if (!made) return refuse_memory();
  made->link = std::move(request.link);
  made->qp = made->link.id->qp;
  made->unflushed.start();
  if (const int error = made->flush_sink.make(request.peer)) return error;
  out = std::move(made);
  return 0;
}

int give_up(std::unique_ptr<rpma_conn_req> request) {
  int result = 0;
  if (request->passive && rdma_reject(request->link.id.get(), nullptr, 0)) result = FAILED("rdma_reject", errno);
  const int closed = request->link.close();
  return result ? result : closed;
}

int refuse_connect(rpma_conn** conn_ptr, const rpma_conn_private_data* pdata) {
  constexpr const char* kFunction = "rpma_conn_req_connect";
  if (!conn_ptr) return refuse_null(kFunction, {NAMED(conn_ptr)});
  return refuse(kFunction, RPMA_E_INVAL,
                "pdata->ptr is %p and pdata->len is %u.\nPass bytes, or NULL for pdata if there are none.", pdata->ptr,
                unsigned{pdata->len});
}

}  // namespace

RPMA_EXPORT int rpma_conn_req_new(rpma_peer* peer, const char* addr, const char* port, const rpma_conn_cfg* cfg,
                                  rpma_conn_req** req_ptr) {
  if (!peer || !addr || !port || !req_ptr)
    return refuse_null(__func__, {NAMED(peer), NAMED(addr), NAMED(port), NAMED(req_ptr)});
  const dapple::NoCancel whole;
  if (!cfg) cfg = &kDefaultConnCfg;
  const int timeout_ms = cfg->timeout_ms;
  const Address address = find_address(addr, port, Side::kActive);
  if (!address) return RPMA_E_PROVIDER;  // no refusal: rdma_getaddrinfo() has its report
  // An id without a channel has synchronous calls.
  CmId id = dapple::verbs::create_cm_id(nullptr, nullptr);
  if (!id) return FAILED("rdma_create_id", errno);
  if (rdma_resolve_addr(id.get(), address->ai_src_addr, address->ai_dst_addr, timeout_ms)) {
    return FAILED("rdma_resolve_addr", errno);
  }
  if (rdma_resolve_route(id.get(), timeout_ms)) return FAILED("rdma_resolve_route", errno);
  std::unique_ptr<rpma_conn_req> made;
  if (const int error = make_request(*peer, std::move(id), *cfg, false, made)) return error;
  LOG(NOTICE, "Requesting a connection to %s:%s", addr, port);
  *req_ptr = made.release();
  return 0;
}

RPMA_EXPORT int rpma_conn_req_delete(rpma_conn_req** req_ptr) {
  if (!req_ptr) return refuse_null(__func__, {NAMED(req_ptr)});
  const dapple::NoCancel whole;
  std::unique_ptr<rpma_conn_req> request(std::exchange(*req_ptr, nullptr));
  return request ? give_up(std::move(request)) : 0;
}

RPMA_EXPORT int rpma_conn_req_connect(rpma_conn_req** req_ptr, const rpma_conn_private_data* pdata,
                                      rpma_conn** conn_ptr) {
  if (!req_ptr) return refuse_null(__func__, {NAMED(req_ptr)});
  if (!*req_ptr) return refuse_null(__func__, {NAMED(*req_ptr)});
  const dapple::NoCancel whole;
  std::unique_ptr<rpma_conn_req> request(std::exchange(*req_ptr, nullptr));
  if (!conn_ptr || (pdata && (!pdata->ptr || pdata->len == 0))) {
    (void)give_up(std::move(request));
    return refuse_connect(conn_ptr, pdata);
  }
  // An id that is destroyed unanswered rejects the peer's request.
  std::unique_ptr<rpma_conn> made;
  if (const int error = make_connection(*request, made)) return error;
  rdma_conn_param param = connection_parameters(pdata);
  if (request->passive) {
    if (rdma_accept(made->link.id.get(), &param)) return FAILED("rdma_accept", errno);
  } else {
    if (rdma_connect(made->link.id.get(), &param)) return FAILED("rdma_connect", errno);
  }
  *conn_ptr = made.release();
  return 0;
}

RPMA_EXPORT int rpma_conn_req_recv(rpma_conn_req* req, rpma_mr_local* dst, size_t offset, size_t len,
                                   const void* op_context) {
  if (!req || !dst || len > UINT32_MAX) return refuse_recv(req, dst, len);
  const int error = post_recv(req->link.id->qp, ibv_post_recv, req->link.recv_slots, dst, offset, len, op_context);
  return error ? FAILED("ibv_post_recv", error) : 0;
}

RPMA_EXPORT int rpma_conn_req_get_private_data(const rpma_conn_req* req, rpma_conn_private_data* pdata) {
  if (!req || !pdata) return refuse_null(__func__, {NAMED(req), NAMED(pdata)});
  *pdata = req->link.data.view();
  return 0;
}
