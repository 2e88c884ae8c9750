// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The scenarios that need two endpoints of this process, connected through the real device.
#include <dat2/dat_ib_extensions.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "tests/softroce/inject/run.hpp"

namespace dapple::inject {
namespace {

constexpr DAT_CONN_QUAL kReserved = 5151;
constexpr uint16_t kCommonPort = 5152;
constexpr DAT_COUNT kGreetingSize = 12;
char greeting[kGreetingSize] = "good day";

struct End {
  DAT_EVD_HANDLE dto = DAT_HANDLE_NULL;  // receives, requests and binds
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
};

// Two ends whose connection events and requests all arrive on one EVD, so that the first consequence of a failure is
// the next event, for either end.
struct Pair {
  explicit Pair(Run& its_run) : run(its_run) {}

  void create_end(End& end, DAT_SRQ_HANDLE srq, DAT_EP_ATTR* attr) {
    DAT_CALL(run, dat_evd_create, run.ia, 64, DAT_HANDLE_NULL,
             static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG), &end.dto);
    if (srq) {
      DAT_CALL(run, dat_ep_create_with_srq, run.ia, run.pz, end.dto, end.dto, events, srq, attr, &end.ep);
    } else {
      DAT_CALL(run, dat_ep_create, run.ia, run.pz, end.dto, end.dto, events, attr, &end.ep);
    }
  }

  void create(DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL, DAT_EP_ATTR* attr = nullptr) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = run.memory();
    DAT_CALL(run, dat_lmr_create, run.ia, DAT_MEM_TYPE_VIRTUAL, region, kMemorySize, run.pz, DAT_MEM_PRIV_ALL_FLAG,
             DAT_VA_TYPE_VA, &lmr, &lmr_context, &rmr_context, nullptr, nullptr);
    DAT_CALL(run, dat_evd_create, run.ia, 32, DAT_HANDLE_NULL,
             static_cast<DAT_EVD_FLAGS>(DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG), &events);
    create_end(active, DAT_HANDLE_NULL, attr);
    create_end(passive, srq, attr);
  }

  void destroy() {
    DAT_CALL(run, dat_ep_free, active.ep);
    DAT_CALL(run, dat_ep_free, passive.ep);
    DAT_CALL(run, dat_evd_free, active.dto);
    DAT_CALL(run, dat_evd_free, passive.dto);
    DAT_CALL(run, dat_evd_free, events);
    DAT_CALL(run, dat_lmr_free, lmr);
  }

  void request(DAT_CONN_QUAL to) {
    DAT_CALL(run, dat_ep_connect, active.ep, run.attr.ia_address_ptr, to, kWaitUs, kGreetingSize, greeting,
             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
  }

  DAT_CR_HANDLE take_request() {
    return run.expect(events, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
  }

  // with: the EP to accept with, or null if the request has its own.
  void accept(DAT_EP_HANDLE with) {
    const DAT_CR_HANDLE cr = take_request();
    DAT_CALL(run, dat_cr_accept, cr, with, 0, nullptr);
    expect_both(DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  void expect_both(DAT_EVENT_NUMBER number) {
    run.expect(events, number);
    run.expect(events, number);
  }

  void disconnect(DAT_CLOSE_FLAGS how) {
    DAT_CALL(run, dat_ep_disconnect, active.ep, how);
    expect_both(DAT_CONNECTION_EVENT_DISCONNECTED);
  }

  void reset() {
    DAT_CALL(run, dat_ep_reset, active.ep);
    DAT_CALL(run, dat_ep_reset, passive.ep);
  }

  DAT_LMR_TRIPLET local(size_t offset) const { return {where(offset), 64, lmr_context}; }
  DAT_RMR_TRIPLET remote(size_t offset) const { return {where(offset), 64, rmr_context}; }
  DAT_VADDR where(size_t offset) const { return reinterpret_cast<DAT_VADDR>(run.memory() + offset); }

  void receive() {
    DAT_LMR_TRIPLET to = local(4096);
    DAT_CALL(run, dat_ep_post_recv, passive.ep, 1, &to, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
  }

  void send() {
    DAT_LMR_TRIPLET from = local(0);
    DAT_CALL(run, dat_ep_post_send, active.ep, 1, &from, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
    run.expect_done(active.dto);
    run.expect_done(passive.dto);
  }

  Run& run;
  DAT_EVD_HANDLE events = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context = 0;
  DAT_RMR_CONTEXT rmr_context = 0;
  End active;
  End passive;
};

}  // namespace

void play_connection(Run& run) {
  Pair pair(run);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_CONN_QUAL port = 0;
  run.open();
  pair.create();
  DAT_CALL(run, dat_psp_create_any, run.ia, &port, pair.events, DAT_PSP_CONSUMER_FLAG, &psp);
  pair.request(port);
  pair.accept(pair.passive.ep);

  pair.receive();
  pair.send();
  DAT_LMR_TRIPLET here = pair.local(0);
  const DAT_RMR_TRIPLET there = pair.remote(8192);
  DAT_CALL(run, dat_ep_post_rdma_write, pair.active.ep, 1, &here, DAT_DTO_COOKIE{}, &there,
           DAT_COMPLETION_DEFAULT_FLAG);
  run.expect_done(pair.active.dto);
  DAT_CALL(run, dat_ep_post_rdma_read, pair.active.ep, 1, &here, DAT_DTO_COOKIE{}, &there, DAT_COMPLETION_DEFAULT_FLAG);
  run.expect_done(pair.active.dto);

  pair.disconnect(DAT_CLOSE_GRACEFUL_FLAG);
  // A disconnected EP flushes what is posted.
  pair.receive();
  run.expect(pair.passive.dto, DAT_DTO_COMPLETION_EVENT);
  pair.reset();
  DAT_CALL(run, dat_psp_free, psp);
  pair.destroy();
  run.close();
}

void play_service_points(Run& run) {
  Pair pair(run);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
  DAT_CONN_QUAL port = 0;
  DAT_COMM comm = {AF_INET, SOCK_STREAM, 0};
  sockaddr_in address{};
  run.open();
  pair.create();

  DAT_CALL(run, dat_rsp_create, run.ia, kReserved, pair.passive.ep, pair.events, &rsp);
  pair.request(kReserved);
  pair.accept(DAT_HANDLE_NULL);
  DAT_CALL(run, dat_rsp_free, rsp);
  pair.disconnect(DAT_CLOSE_ABRUPT_FLAG);
  pair.reset();

  std::memcpy(&address, run.attr.ia_address_ptr, sizeof address);
  address.sin_port = htons(kCommonPort);
  auto* to = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address);
  DAT_CALL(run, dat_csp_create, run.ia, &comm, to, pair.events, &csp);
  DAT_CALL(run, dat_ep_common_connect, pair.active.ep, to, kWaitUs, kGreetingSize, greeting);
  DAT_CR_HANDLE cr = pair.take_request();
  DAT_CALL(run, dat_cr_reject, cr, kGreetingSize, greeting);
  run.expect(pair.events, DAT_CONNECTION_EVENT_PEER_REJECTED);
  DAT_CALL(run, dat_csp_free, csp);
  DAT_CALL(run, dat_ep_reset, pair.active.ep);

  // An EP that the provider makes has no PZ, so the test hands its request over to a service point that needs none.
  DAT_CALL(run, dat_psp_create_any, run.ia, &port, pair.events, DAT_PSP_PROVIDER_FLAG, &psp);
  DAT_CALL(run, dat_rsp_create, run.ia, kReserved, pair.passive.ep, pair.events, &rsp);
  pair.request(port);
  cr = pair.take_request();
  DAT_CALL(run, dat_cr_handoff, cr, kReserved);
  pair.accept(DAT_HANDLE_NULL);
  DAT_CALL(run, dat_rsp_free, rsp);
  DAT_CALL(run, dat_psp_free, psp);
  pair.disconnect(DAT_CLOSE_ABRUPT_FLAG);
  pair.destroy();
  run.close();
}

void play_windows(Run& run) {
  Pair pair(run);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_RMR_HANDLE windows[2] = {};
  DAT_CONN_QUAL port = 0;
  DAT_RMR_CONTEXT context = 0;
  run.open();
  pair.create();
  DAT_CALL(run, dat_psp_create_any, run.ia, &port, pair.events, DAT_PSP_CONSUMER_FLAG, &psp);
  pair.request(port);
  pair.accept(pair.passive.ep);
  DAT_CALL(run, dat_rmr_create, run.pz, &windows[0]);
  DAT_CALL(run, dat_rmr_create_for_ep, run.pz, &windows[1]);
  const auto bind = [&](DAT_RMR_HANDLE window, DAT_VLEN length) {
    DAT_LMR_TRIPLET part = pair.local(0);
    part.segment_length = static_cast<DAT_SEG_LENGTH>(length);
    DAT_CALL(run, dat_rmr_bind, window, pair.lmr, &part, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, pair.passive.ep,
             DAT_RMR_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG, &context);
    run.expect_done(pair.passive.dto, DAT_RMR_BIND_COMPLETION_EVENT);
  };
  for (DAT_RMR_HANDLE window : windows) {
    bind(window, 4096);
    bind(window, 2048);
    bind(window, 0);
  }
  // A window that is still bound when its queue pair is destroyed.
  bind(windows[1], 4096);
  pair.disconnect(DAT_CLOSE_ABRUPT_FLAG);
  pair.reset();
  for (DAT_RMR_HANDLE window : windows) DAT_CALL(run, dat_rmr_free, window);
  DAT_CALL(run, dat_psp_free, psp);
  pair.destroy();
  run.close();
}

void play_shared_queue(Run& run) {
  Pair pair(run);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE found = DAT_HANDLE_NULL;
  DAT_SRQ_PARAM param{};
  DAT_EVENT event{};
  DAT_CONN_QUAL port = 0;
  DAT_SRQ_ATTR attr{};
  attr.max_recv_dtos = 8;
  attr.max_recv_iov = 2;
  attr.low_watermark = 2;
  run.open();
  DAT_CALL(run, dat_srq_create, run.ia, run.pz, &attr, &srq);
  DAT_CALL(run, dat_srq_resize, srq, 16);
  pair.create(srq);
  DAT_LMR_TRIPLET to = pair.local(4096);
  for (int i = 0; i < 4; ++i) DAT_CALL(run, dat_srq_post_recv, srq, 1, &to, DAT_DTO_COOKIE{});
  DAT_CALL(run, dat_srq_set_lw, srq, 1);
  DAT_CALL(run, dat_srq_query, srq, DAT_SRQ_FIELD_ALL, &param);
  DAT_CALL(run, dat_psp_create_any, run.ia, &port, pair.events, DAT_PSP_CONSUMER_FLAG, &psp);
  pair.request(port);
  pair.accept(pair.passive.ep);
  pair.send();

  // The same, reported by a CNO.
  DAT_LMR_TRIPLET from = pair.local(0);
  DAT_CALL(run, dat_cno_create, run.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno);
  DAT_CALL(run, dat_evd_modify_cno, pair.passive.dto, cno);
  DAT_CALL(run, dat_ep_post_send, pair.active.ep, 1, &from, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
  DAT_CALL(run, dat_cno_wait, cno, kWaitUs, &found);
  DAT_CALL(run, dat_evd_dequeue, pair.passive.dto, &event);
  run.expect_done(pair.active.dto);
  DAT_CALL(run, dat_evd_modify_cno, pair.passive.dto, DAT_HANDLE_NULL);
  DAT_CALL(run, dat_cno_free, cno);

  pair.disconnect(DAT_CLOSE_ABRUPT_FLAG);
  // An event of the shared queue reports that this EP has left it.
  run.expect(run.async, DAT_ASYNC_ERROR_EP_BROKEN);
  pair.reset();
  DAT_CALL(run, dat_psp_free, psp);
  pair.destroy();
  DAT_CALL(run, dat_srq_free, srq);
  run.close();
}

namespace {

constexpr auto kUdEstablished = static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
constexpr auto kUdDto = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);

// The information that one end gets about the other.
struct Learnt {
  DAT_IB_ADDR_HANDLE address{};
  DAT_CONTEXT connection{};
};

// Both ends' events arrive in any order. Without an acceptor the request has the endpoint that was reserved for it.
void resolve(Pair& pair, DAT_CONN_QUAL port, DAT_EP_HANDLE acceptor, Learnt& active, Learnt& passive) {
  pair.request(port);
  const DAT_EVENT request =
      pair.run.expect(pair.events, static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_REQUEST_EVENT));
  const DAT_CR_HANDLE cr = request.event_data.cr_arrival_event_data.cr_handle;
  DAT_CALL(pair.run, dat_cr_accept, cr, acceptor, 0, nullptr);
  for (int i = 0; i < 2; ++i) {
    const DAT_EVENT event = pair.run.expect(pair.events, kUdEstablished);
    DAT_IB_EXTENSION_EVENT_DATA told{};
    std::memcpy(&told, event.event_extension_data, sizeof told);
    Learnt& end = event.event_data.connect_event_data.ep_handle == pair.active.ep ? active : passive;
    end = {told.remote_ah, told.context};
  }
}

}  // namespace

void play_datagrams(Run& run) {
  Pair pair(run);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  DAT_CONN_QUAL port = 0;
  DAT_EP_ATTR attr{};
  Learnt active;
  Learnt passive;
  attr.service_type = static_cast<DAT_SERVICE_TYPE>(DAT_IB_SERVICE_TYPE_UD);
  attr.max_recv_dtos = attr.max_request_dtos = 8;
  attr.max_recv_iov = attr.max_request_iov = 2;
  run.open();
  pair.create(DAT_HANDLE_NULL, &attr);
  DAT_CALL(run, dat_rsp_create, run.ia, kReserved, pair.passive.ep, pair.events, &rsp);
  resolve(pair, kReserved, DAT_HANDLE_NULL, active, passive);
  DAT_CALL(run, dat_rsp_free, rsp);

  DAT_LMR_TRIPLET to = pair.local(4096);
  to.segment_length = 1024;  // preceded by a routing header
  DAT_LMR_TRIPLET from = pair.local(0);
  DAT_CALL(run, dat_ep_post_recv, pair.passive.ep, 1, &to, DAT_DTO_COOKIE{}, DAT_COMPLETION_DEFAULT_FLAG);
  run.call("dat_ib_post_send_ud", [&] {
    return dat_ib_post_send_ud(pair.active.ep, 1, &from, &active.address, DAT_DTO_COOKIE{},
                               DAT_COMPLETION_DEFAULT_FLAG);
  });
  run.expect_done(pair.active.dto, kUdDto);
  run.expect_done(pair.passive.dto, kUdDto);

  // The test frees one address of each end; another is destroyed with its EP.
  run.call("dat_ib_ud_ah_free", [&] { return dat_ib_ud_ah_free(pair.active.ep, &active.address); });
  run.call("dat_ib_ud_cm_free", [&] { return dat_ib_ud_cm_free(pair.active.ep, active.connection); });
  run.call("dat_ib_ud_cm_free", [&] { return dat_ib_ud_cm_free(pair.passive.ep, passive.connection); });
  DAT_CALL(run, dat_psp_create_any, run.ia, &port, pair.events, DAT_PSP_CONSUMER_FLAG, &psp);
  resolve(pair, port, pair.passive.ep, active, passive);

  pair.request(port);
  const DAT_EVENT refused = run.expect(pair.events, static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_REQUEST_EVENT));
  const DAT_CR_HANDLE cr = refused.event_data.cr_arrival_event_data.cr_handle;
  DAT_CALL(run, dat_cr_reject, cr, 0, nullptr);
  run.expect(pair.events, static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_REJECT_EVENT));
  DAT_CALL(run, dat_psp_free, psp);
  pair.destroy();
  run.close();
}

}  // namespace dapple::inject
