// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The result of one connect or accept on a datagram endpoint: a peer's address handle and queue pair number, over
// rdma_cm's UDP port space. It is not a DAT handle; consumers know it as the context of an extension event, and free it
// by dat_ib_ud_cm_free. Its address handle belongs to the endpoint and outlives it.
//
// All calls are made with the control mutex held.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "ibverbs-glue/rdma_cm.hpp"
#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/connection/ud_message.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Datagrams;

class UdConnection : public Object {
 public:
  static constexpr Kind kKind = Kind::kUdConnection;

  // Asks the peer that listens at that address and port. data has at most UdMessage::kMaxRequestData bytes.
  static Result<UdConnection*> connect(Datagrams& of, const sockaddr* peer, uint32_t timeout_us,
                                       std::span<const uint8_t> data);
  // Prepares begin_answer(), which finds the route back to the peer that sent this request, then sends it our queue
  // pair and the reply, which has at most UdMessage::kMaxReplyData bytes. Later errors are events. Throws
  // std::bad_alloc with nothing changed.
  static UdConnection* accept(Datagrams& of, verbs::CmId& request, const UdReceived& message,
                              std::span<const uint8_t> reply);
  void begin_answer();
  static void free(UdConnection& connection);

  Datagrams& of() const { return of_; }
  bool passive() const { return passive_; }
  bool pending() const { return pending_; }

  // Valid once it is established. The endpoint owns the address.
  ibv_ah* address_handle() const { return address_handle_; }
  uint32_t qp_num() const { return qp_num_; }
  const sockaddr* peer() const { return peer_.get(); }
  // The private data of the request, of the reply or of the rejection.
  std::span<const uint8_t> private_data() const { return private_data_; }

  void on_connection_event(const verbs::CmEvent& event);
  void on_deadline();

 private:
  friend class Arena<UdConnection>;
  UdConnection(Datagrams& of, bool passive, const sockaddr* peer);

  Result<> start();
  bool resolve_address();
  bool resolve_route();
  bool ask();
  bool answer();
  void establish(verbs::Ah handle, uint32_t qp_num);
  verbs::Ah make_address(ibv_ah_attr attr) const;
  void fail(const char* what, int status);
  void log_failure(const char* what, int status) const;
  void end(EventKind kind);

  Datagrams& of_;
  ConnectionManager::Client client_;
  const bool passive_;
  bool pending_ = true;
  int arp_retries_left_;
  int route_retries_left_;
  verbs::CmId id_;       // resolves the route and sends the request
  verbs::CmId request_;  // passive side: the request to answer
  ibv_ah* address_handle_ = nullptr;
  uint32_t qp_num_ = 0;
  verbs::SocketAddress peer_;
  uint32_t serial_ = 0;  // passive side: the request's serial number
  UdMessage outgoing_{0, 0, {}};
  verbs::PrivateData private_data_;
};

}  // namespace dapple::udapl
