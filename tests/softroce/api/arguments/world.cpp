// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/softroce/api/arguments/world.hpp"

#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

namespace arguments {
namespace {

constexpr auto kEveryStream = static_cast<DAT_EVD_FLAGS>(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);

DAT_EVD_HANDLE make_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  assert_ok(dat_evd_create(ia, 64, DAT_HANDLE_NULL, flags, &evd));
  return evd;
}

DAT_EP_HANDLE make_ep(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE evd) {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  assert_ok(dat_ep_create(ia, pz, evd, evd, evd, nullptr, &ep));
  return ep;
}

DAT_SRQ_HANDLE make_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz) {
  DAT_SRQ_ATTR attr = {16, 2, 0};
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  assert_ok(dat_srq_create(ia, pz, &attr, &srq));
  return srq;
}

DAT_CNO_HANDLE make_cno(DAT_IA_HANDLE ia) {
  const DAT_OS_WAIT_PROXY_AGENT no_agent{};
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  assert_ok(dat_cno_create(ia, no_agent, &cno));
  return cno;
}

DAT_LMR_HANDLE make_lmr(World& w, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT* context) {
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  region.for_va = w.f.memory;
  assert_ok(dat_lmr_create(w.f.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, w.f.pz, privileges, DAT_VA_TYPE_VA, &lmr,
                           context, nullptr, nullptr, nullptr));
  return lmr;
}

// iWARP has none.
DAT_RMR_HANDLE make_rmr(World& w) {
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  if (on_iwarp()) return rmr;
  assert_ok(dat_rmr_create(w.f.pz, &rmr));
  return rmr;
}

#if DAPPLE_DAT_MAJOR != 1
DAT_CSP_HANDLE make_csp(World& w) {
  DAT_COMM comm;
  sockaddr_storage address{};
  DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
  comm.domain = w.f.attr.ia_address_ptr->sa_family;
  comm.type = SOCK_STREAM;
  comm.protocol = 0;
  address.ss_family = w.f.attr.ia_address_ptr->sa_family;
  assert_ok(dat_csp_create(w.f.ia, &comm, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), w.f.requests, &csp));
  return csp;
}
#endif

// A request from this EP to the service point.
DAT_CR_HANDLE ask(World& w, DAT_EP_HANDLE ep) {
  // Without a time limit of its own: an emulated machine's clock may run many times too fast.
  assert_ok(dat_ep_connect(ep, w.f.attr.ia_address_ptr, w.f.port, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  return take_request(&w.f);
}

// Connected to an EP like the passive end.
DAT_EP_HANDLE make_connected(World& w, DAT_PZ_HANDLE pz) {
  DAT_EP_HANDLE ep = make_ep(w.f.ia, pz, w.full_evd);
  end peer;
  make_end(&w.f, &peer, nullptr);
  assert_ok(dat_cr_accept(ask(w, ep), peer.ep, 0, nullptr));
  expect_event(w.full_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(peer.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  return ep;
}

void make_good(World& w) {
  w.used_cno = make_cno(w.f.ia);
  assert_ok(dat_evd_create(w.f.ia, 64, w.used_cno, kEveryStream, &w.full_evd));
  w.plain_evd = make_evd(w.f.ia, DAT_EVD_SOFTWARE_FLAG);
  ONLY_20(assert_ok(dat_cno_fd_create(w.f.ia, &w.fd, &w.fd_cno));)
  assert_ok(dat_pz_create(w.f.ia, &w.spare_pz));
  assert_ok(dat_pz_create(w.f.ia, &w.free_pz));
  w.read_only_lmr = make_lmr(w, DAT_MEM_PRIV_LOCAL_READ_FLAG, &w.read_only_context);
  w.bind_ep = make_connected(w, w.f.pz);
  w.other_zone_ep = make_connected(w, w.spare_pz);
  w.used_srq = make_srq(w.f.ia, w.f.pz);
  assert_ok(dat_ep_create_with_srq(w.f.ia, w.f.pz, w.full_evd, w.full_evd, w.full_evd, w.used_srq, nullptr, &w.srq_ep));
  assert_ok(
      dat_ep_create(w.f.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr, &w.bare_ep));
  w.reserved_ep = make_ep(w.f.ia, w.f.pz, w.full_evd);
  w.requesting_ep = make_ep(w.f.ia, w.f.pz, w.full_evd);

  w.good[kIa] = w.f.ia;
  w.good[kPz] = w.f.pz;
  w.good[kLmr] = w.f.lmr;
  w.good[kRmr] = make_rmr(w);
  w.good[kEvd] = make_evd(w.f.ia, kEveryStream);
  w.good[kCno] = make_cno(w.f.ia);
  w.good[kEp] = make_ep(w.f.ia, w.f.pz, w.full_evd);
  w.good[kSrq] = make_srq(w.f.ia, w.f.pz);
  w.good[kPsp] = w.f.psp;
  assert_ok(dat_rsp_create(w.f.ia, 7001, w.reserved_ep, w.f.requests, &w.good[kRsp]));
  ONLY_20(w.good[kCsp] = make_csp(w);)
  w.good[kCr] = ask(w, w.requesting_ep);
}

void make_foreign(World& w) {
  open_ia(&w.other, IA_NAME);
  register_memory(&w.other);
  w.foreign[kPz] = w.other.pz;
  w.foreign[kLmr] = w.other.lmr;
  w.foreign[kEvd] = make_evd(w.other.ia, kEveryStream);
  w.foreign[kCno] = make_cno(w.other.ia);
  w.foreign[kEp] = make_ep(w.other.ia, w.other.pz, w.foreign[kEvd]);
  w.foreign[kSrq] = make_srq(w.other.ia, w.other.pz);
}

// This comes last, so that no slot is used again.
void make_freed(World& w) {
  DAT_HANDLE* freed = w.freed;
  fixture third{};
  DAT_EP_HANDLE ep = make_ep(w.f.ia, w.f.pz, w.full_evd);
  freed[kCr] = ask(w, ep);
  assert_ok(dat_cr_reject(freed[kCr], 0, nullptr));
  expect_event(w.full_evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
  freed[kEp] = ep;
  assert_ok(dat_ep_free(ep));
  ep = make_ep(w.f.ia, w.f.pz, w.full_evd);
  assert_ok(dat_rsp_create(w.f.ia, 7002, ep, w.f.requests, &freed[kRsp]));
  assert_ok(dat_rsp_free(freed[kRsp]));
  assert_ok(dat_ep_free(ep));
  assert_ok(dat_psp_create(w.f.ia, 7003, w.f.requests, DAT_PSP_CONSUMER_FLAG, &freed[kPsp]));
  assert_ok(dat_psp_free(freed[kPsp]));
  ONLY_20(freed[kCsp] = make_csp(w); assert_ok(dat_csp_free(freed[kCsp]));)
  freed[kRmr] = make_rmr(w);
  if (freed[kRmr]) assert_ok(dat_rmr_free(freed[kRmr]));
  freed[kLmr] = make_lmr(w, DAT_MEM_PRIV_ALL_FLAG, nullptr);
  assert_ok(dat_lmr_free(freed[kLmr]));
  freed[kEvd] = make_evd(w.f.ia, kEveryStream);
  assert_ok(dat_evd_free(freed[kEvd]));
  freed[kCno] = make_cno(w.f.ia);
  assert_ok(dat_cno_free(freed[kCno]));
  freed[kSrq] = make_srq(w.f.ia, w.f.pz);
  assert_ok(dat_srq_free(freed[kSrq]));
  assert_ok(dat_pz_create(w.f.ia, &freed[kPz]));
  assert_ok(dat_pz_free(freed[kPz]));
  open_ia(&third, IA_NAME);
  freed[kIa] = third.ia;
  assert_ok(dat_ia_close(third.ia, DAT_CLOSE_ABRUPT_FLAG));
}

}  // namespace

int set_up_world(void** state) {
  auto* w = static_cast<World*>(std::calloc(1, sizeof(World)));
  void* connected = nullptr;
  if (set_up_connected(&connected)) return -1;
  std::memcpy(static_cast<void*>(&w->f), connected, sizeof w->f);  // its const members forbid assignment
  std::free(connected);
  make_good(*w);
  make_foreign(*w);
  make_freed(*w);
  *state = w;
  return 0;
}

int tear_down_world(void** state) {
  auto* w = static_cast<World*>(*state);
  if (w->f.ia) assert_ok(dat_ia_close(w->f.ia, DAT_CLOSE_ABRUPT_FLAG));
  if (w->other.ia) (void)dat_ia_close(w->other.ia, DAT_CLOSE_ABRUPT_FLAG);  // the test may have done so
  std::free(w);
  return 0;
}

}  // namespace arguments
