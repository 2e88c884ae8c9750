// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Connecting and disconnecting.
#include <netinet/in.h>

#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

char data[256];
sockaddr_storage there, no_port, other_family;

Argument timeout() {
  return good(WAIT_US).also("0", 0);
}

// A size and the data; in that order.
Argument data_size(int largest) {
  return good(8).also("negative", -1).also("too much", largest + 1).also("huge", INT32_MAX);
}
Argument private_data() {
  return needed(&data[0]);
}

Argument qos() {
  return good(DAT_QOS_BEST_EFFORT)
      .also("out of range", 0x1000)
      .also("what nobody provides", DAT_QOS_PREMIUM, status(DAT_MODEL_NOT_SUPPORTED));
}

// An EP that can be connected, and some that cannot.
Argument connecting_ep(const Table& t, DAT_EP_HANDLE ep) {
  const World& w = t.w;
  return t.self(kEp, ep)
      .also("connected", w.f.active.ep, state(DAT_INVALID_STATE_EP_CONNECTED))
      .also("connecting", w.requesting_ep, state(DAT_INVALID_STATE_EP_ACTCONNPENDING))
      .also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))
      .also("unconfigured", w.bare_ep, state(DAT_INVALID_STATE_EP_PZ));
}

DAT_EP_HANDLE new_ep(const World& w) {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  (void)dat_ep_create(w.f.ia, w.f.pz, w.full_evd, w.full_evd, w.full_evd, nullptr, &ep);
  return ep;
}

}  // namespace

void add_connecting(Table& t) {
  const World& w = t.w;
  const bool ipv6 = w.f.attr.ia_address_ptr->sa_family == AF_INET6;
  std::memcpy(&there, w.f.attr.ia_address_ptr, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  no_port = there;
  reinterpret_cast<sockaddr_in&>(there).sin_port = htons(static_cast<uint16_t>(w.f.port));
  reinterpret_cast<sockaddr_in&>(no_port).sin_port = 0;
  other_family.ss_family = ipv6 ? AF_INET : AF_INET6;

  t.add(FUNCTION(dat_ep_connect,
                 {connecting_ep(t, w.good[kEp]),
                  needed(&there).also("of another family", &other_family,
                                      status(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)),
                  good(w.f.port).also("0", 0), timeout(), data_size(56), private_data(), qos(),
                  good(DAT_CONNECT_DEFAULT_FLAG)
                      .also("out of range", 0x1000)
                      .also("negative", -1) ONLY_20(.also("what nobody provides", DAT_CONNECT_MULTIPATH_REQUIRED_FLAG,
                                                          status(DAT_MODEL_NOT_SUPPORTED)))}));
  t.add(FUNCTION(dat_ep_dup_connect, {connecting_ep(t, new_ep(w)),
                                      t.further(kEp, w.f.active.ep, DAT_INVALID_HANDLE_EP)
                                          .also("unconnected", w.srq_ep, state(DAT_INVALID_STATE_EP_UNCONNECTED)),
                                      timeout(), data_size(56), private_data(), qos()}));
#if DAPPLE_DAT_MAJOR != 1
  t.add(FUNCTION(
      dat_ep_common_connect,
      {connecting_ep(t, new_ep(w)),
       needed(&there)
           .also("of another family", &other_family, status(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED))
           .also("without a port", &no_port, status(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED)),
       timeout(), data_size(56), private_data()}));
#endif
  t.add(FUNCTION(dat_ep_disconnect, {t.self(kEp, w.bind_ep)
                                         .also("unconnected", w.srq_ep, state(DAT_INVALID_STATE_EP_UNCONNECTED))
                                         .also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))
                                         .also("unconfigured", w.bare_ep, state(DAT_INVALID_STATE_EP_UNCONFIGURED)),
                                     good(DAT_CLOSE_ABRUPT_FLAG).also("out of range", 2).also("negative", -1)}));
}

}  // namespace arguments
