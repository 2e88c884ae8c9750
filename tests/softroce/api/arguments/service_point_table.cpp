// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Service points and connection requests.
#include <netinet/in.h>

#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

DAT_HANDLE made;
DAT_CONN_QUAL conn_qual;
char data[256];
DAT_PSP_PARAM psp_param;
DAT_RSP_PARAM rsp_param;
ONLY_20(DAT_CSP_PARAM csp_param;)
DAT_CR_PARAM cr_param;
ONLY_20(DAT_COMM comm, unknown_domain, unknown_type, unknown_protocol;
        sockaddr_storage any_address, other_family, not_ours, taken;)

Argument evd(const Table& t) {
  return t.further(kEvd, t.w.f.requests, DAT_INVALID_HANDLE_EVD_CR)
      .also("of other streams", t.w.f.active.recv, handle_error(DAT_INVALID_HANDLE_EVD_CR));
}

Argument number(const Table& t, uint64_t good_one) {
  return good(good_one).also("0", 0).also("in use", t.w.f.port, status(DAT_CONN_QUAL_IN_USE));
}

Argument psp_flags() {
  return good(DAT_PSP_CONSUMER_FLAG).also("out of range", 2).also("negative", -1);
}

Argument size(int largest) {
  return good(8).also("negative", -1).also("too much", largest + 1).also("huge", INT32_MAX);
}

#if DAPPLE_DAT_MAJOR != 1
void fill_addresses(const World& w) {
  const bool ipv6 = w.f.attr.ia_address_ptr->sa_family == AF_INET6;
  any_address.ss_family = ipv6 ? AF_INET6 : AF_INET;
  other_family.ss_family = ipv6 ? AF_INET : AF_INET6;
  not_ours.ss_family = any_address.ss_family;
  reinterpret_cast<sockaddr_in&>(not_ours).sin_addr.s_addr = htonl(0x0a090063);
  DAT_CSP_PARAM there;
  if (dat_csp_query(w.good[kCsp], DAT_CSP_FIELD_ALL, &there) == DAT_SUCCESS) {
    std::memcpy(&taken, there.address_ptr, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  }
  comm = {any_address.ss_family, SOCK_STREAM, 0};
  unknown_domain = {999, SOCK_STREAM, 0};
  unknown_type = {comm.domain, 999, 0};
  unknown_protocol = {comm.domain, SOCK_STREAM, 999};
}
#endif

}  // namespace

void add_service_points(Table& t) {
  const World& w = t.w;
  ONLY_20(const DAT_RETURN no_comm = status(DAT_COMM_NOT_SUPPORTED);
          const DAT_RETURN no_address = status(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
          fill_addresses(w);)
  t.add(FUNCTION(dat_psp_create, {t.self(kIa), number(t, 7010), evd(t), psp_flags(), needed(&made)}));
  t.add(FUNCTION(dat_psp_create_any, {t.self(kIa), needed(&conn_qual), evd(t), psp_flags(), needed(&made)}));
  t.add(FUNCTION(dat_psp_query, {t.self(kPsp), mask(DAT_PSP_FIELD_ALL), needed(&psp_param)}));
  t.add(FUNCTION(dat_rsp_create, {t.self(kIa), number(t, 7011),
                                  t.optional_further(kEp, w.good[kEp], DAT_INVALID_HANDLE_EP)
                                      .also("connected", w.f.active.ep, state(DAT_INVALID_STATE_EP_CONNECTED))
                                      .also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))
                                      .also("connecting", w.requesting_ep, state(DAT_INVALID_STATE_EP_ACTCONNPENDING)),
                                  evd(t), needed(&made)}));
  t.add(FUNCTION(dat_rsp_query, {t.self(kRsp), mask(DAT_RSP_FIELD_ALL), needed(&rsp_param)}));
#if DAPPLE_DAT_MAJOR != 1
  t.add(FUNCTION(dat_csp_create, {t.self(kIa),
                                  needed(&comm)
                                      .also("an unknown domain", &unknown_domain, no_comm)
                                      .also("an unknown type", &unknown_type, no_comm)
                                      .also("an unknown protocol", &unknown_protocol, no_comm),
                                  needed(&any_address)
                                      .also("of another family", &other_family, no_address)
                                      .also("not the IA's", &not_ours, no_address)
                                      .also("taken", &taken, status(DAT_PORT_IN_USE)),
                                  evd(t), needed(&made)}));
  t.add(FUNCTION(dat_csp_query, {t.self(kCsp), mask(DAT_CSP_FIELD_ALL), needed(&csp_param)}));
#endif
  // Consumers pass the masks of other objects.
  t.add(FUNCTION(dat_cr_query, {t.self(kCr), any(DAT_CR_FIELD_ALL), needed(&cr_param)}));
  t.add(FUNCTION_GIVING(argument_error(2), dat_cr_handoff, {t.self(kCr), good(5).also("0", 0)}));
  t.add(FUNCTION(dat_cr_accept,
                 {t.self(kCr),
                  t.further(kEp, w.srq_ep, DAT_INVALID_HANDLE_EP)
                      .also("connected", w.f.active.ep, state(DAT_INVALID_STATE_EP_CONNECTED))
                      .also("unconfigured", w.bare_ep, state(DAT_INVALID_STATE_EP_PZ))
                      .also("the one that asks", w.requesting_ep, state(DAT_INVALID_STATE_EP_ACTCONNPENDING)),
                  size(196), needed(&data[0])}));
  t.add(FUNCTION(dat_rsp_free, {t.self(kRsp)}));
  ONLY_20(t.add(FUNCTION(dat_csp_free, {t.self(kCsp)}));)
  t.add(FUNCTION(dat_psp_free, {t.self(kPsp)}));
}

// The other way to answer a request, which needs a request of its own.
void add_rejecting(Table& t) {
  t.add(FUNCTION(dat_cr_reject, {t.self(kCr) ONLY_20(, size(144), needed(&data[0]))}));
}

}  // namespace arguments
