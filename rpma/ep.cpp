// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "ibverbs-glue/event_wait.hpp"
#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/address.hpp"
#include "rpma/cfg.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/conn_req.hpp"

// Threads: only one at a time takes requests.
struct rpma_ep {
  const rpma_peer& peer;
  dapple::verbs::EventChannel events;
  dapple::verbs::CmId id;  // destroyed before its channel
};

using namespace dapple::rpma;
using namespace dapple;

RPMA_EXPORT int rpma_ep_listen(rpma_peer* peer, const char* addr, const char* port, rpma_ep** ep_ptr) {
  if (!peer || !addr || !port || !ep_ptr)
    return refuse_null(__func__, {NAMED(peer), NAMED(addr), NAMED(port), NAMED(ep_ptr)});
  const NoCancel whole;
  std::unique_ptr<rpma_ep> made(new (std::nothrow) rpma_ep{*peer, nullptr, nullptr});
  if (!made) return refuse_memory();
  made->events.reset(rdma_create_event_channel());
  if (!made->events) return FAILED("rdma_create_event_channel", errno);
  made->id = verbs::create_cm_id(made->events.get(), nullptr);
  if (!made->id) return FAILED("rdma_create_id", errno);
  const Address address = find_address(addr, port, Side::kPassive);
  if (!address) return RPMA_E_PROVIDER;  // no refusal: rdma_getaddrinfo() has its report
  if (rdma_bind_addr(made->id.get(), address->ai_src_addr)) return FAILED("rdma_bind_addr", errno);
  if (rdma_listen(made->id.get(), 0)) return FAILED("rdma_listen", errno);
  LOG(NOTICE, "Waiting for incoming connection on %s:%s", addr, port);
  *ep_ptr = made.release();
  return 0;
}

RPMA_EXPORT int rpma_ep_shutdown(rpma_ep** ep_ptr) {
  if (!ep_ptr) return refuse_null(__func__, {NAMED(ep_ptr)});
  const NoCancel whole;
  const std::unique_ptr<rpma_ep> ep(std::exchange(*ep_ptr, nullptr));
  if (!ep) return 0;
  if (rdma_destroy_id(ep->id.get())) return FAILED("rdma_destroy_id", errno);
  (void)ep->id.release();
  return 0;
}

RPMA_EXPORT int rpma_ep_get_fd(const rpma_ep* ep, int* fd) {
  if (!ep || !fd) return refuse_null(__func__, {NAMED(ep), NAMED(fd)});
  *fd = ep->events->fd;
  return 0;
}

RPMA_EXPORT int rpma_ep_next_conn_req(rpma_ep* ep, const rpma_conn_cfg* cfg, rpma_conn_req** req_ptr) {
  if (!ep || !req_ptr) return refuse_null(__func__, {NAMED(ep), NAMED(req_ptr)});
  if (!verbs::wait_for_event(*ep->events)) return FAILED("poll", errno);
  const NoCancel whole;
  verbs::CmEvent event;
  if (!verbs::CmEvent::take(ep->events.get(), event)) {
    return errno == EAGAIN || errno == ENODATA ? RPMA_E_NO_EVENT : FAILED("rdma_get_cm_event", errno);
  }
  // Destroying an unanswered request rejects it.
  verbs::CmId id(event.request);
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
    LOG(ERROR, "not a request for a connection: %s", rdma_event_str(event.type));
    return refuse(in_a_line(__func__), RPMA_E_INVAL, "librdmacm's event is %s, no request.\nTake the next event.",
                  rdma_event_str(event.type));
  }
  std::unique_ptr<rpma_conn_req> made;
  if (const int error = make_request(ep->peer, std::move(id), cfg ? *cfg : kDefaultConnCfg, true, made)) return error;
  made->link.data.store(event);
  *req_ptr = made.release();
  return 0;
}
