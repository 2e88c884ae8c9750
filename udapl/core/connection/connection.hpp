// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The connection of an endpoint, over rdma_cm. The queue pair belongs to the Ep, not to the id, so its transitions are
// made here: librdmacm then reports CONNECT_RESPONSE on the active side and leaves the rest to us. Each step also
// changes the Ep's state (ep_state.hpp).
//
// A datagram endpoint uses the parts that do not connect: reservations, the address of the last peer, and the end.
//
// Threads: the caller holds the control mutex, except for notify(), report_failure() and report_flush().
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"

namespace dapple::udapl {

class Cr;
class Ep;
class Rsp;

class Connection {
 public:
  static constexpr size_t kMaxConnectData = 56;  // bytes: the IBTA's 92 without rdma_cm's header
  static constexpr size_t kMaxAcceptData = 196;  // bytes

  explicit Connection(Ep& ep);

  // Ep::connect() has checked the Ep and the address. timeout is in microseconds. The result arrives as an event.
  Result<> connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                   std::span<const uint8_t> private_data);
  Result<> disconnect(bool abrupt);

  // A reserved service point reserves an UNCONNECTED Ep, and releases it.
  void reserve(Rsp& rsp);
  void release(const Rsp& rsp);
  // The Ep was made for a request to this service point.
  void note_reservation(Rsp& rsp);
  // await_acceptance(): a connection request takes the Ep, which was made for the request or reserved.
  // forget_request(): the request gives the Ep back; does nothing if no request has it.
  void await_acceptance(Cr& request, bool made_for_it);
  void forget_request();
  Result<> check_can_accept(const Cr& request, size_t private_data_size) const;
  // Requires check_can_accept(). A failure is an ACCEPT_COMPLETION_ERROR event, because the request cannot be restored.
  // fail_accept() reports such a failure without a connection.
  void accept(verbs::CmId id, uint8_t responder_resources, uint8_t initiator_depth,
              std::span<const uint8_t> private_data);
  void fail_accept();

  // The Ep is being freed: its owners forget it, and the peer is told. No event follows.
  void abandon();
  // No more events come from the id.
  void drop_id() { id_.reset(); }
  // Prepares an Ep with a new queue pair for its next connection.
  void reset();

  // Null before the first attempt to connect or the first request, after a rejected request, and after reset().
  const sockaddr* remote_address() const;
  uint64_t local_port() const { return local_port_; }
  uint64_t remote_port() const { return remote_port_; }
  void remember_peer(const sockaddr* address, uint64_t port);

  // The data path calls these, on any thread. notify() has on_attention() called soon. report_failure(): the device has
  // put the queue pair into the error state, so the connection is broken. report_flush(): only a flushed request shows
  // this.
  void notify() { client_.notify(); }
  void report_failure();
  void report_flush();

  // The connection manager's thread calls these.
  void on_connection_event(const verbs::CmEvent& event);
  void on_device_event(ibv_event_type type);
  void on_attention();
  void on_deadline();

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  void forget_peer();
  Result<> resolve_address();
  Result<> resolve_route();
  Result<> send_connect();
  Result<> set_qp_attributes(ibv_qp_state target, const rdma_conn_param* agreed);
  bool qp_has_failed() const;
  void on_active_event(const verbs::CmEvent& event);
  void on_passive_event(const verbs::CmEvent& event);
  void answer_response(const verbs::CmEvent& event);
  void answer_rejection(const verbs::CmEvent& event);
  void establish(std::span<const uint8_t> private_data);
  void fail_connect(EventKind kind, const char* what, int status);
  void drain();
  void start_disconnect();
  // Ends the connection. False if that took destroying the id: then this connection has no more events.
  bool tell_peer();
  void break_off();
  void break_off_after_refusal();
  void end(EventKind kind);
  void report(EventKind kind);

  Ep& ep_;
  ConnectionManager::Client client_;
  Rsp* reservation_ = nullptr;  // the last service point that the Ep was reserved for
  Cr* request_ = nullptr;       // the request that holds the Ep
  verbs::CmId id_;
  int arp_retries_left_ = 0;
  int route_retries_left_ = 0;
  verbs::SocketAddress remote_;
  uint64_t local_port_ = 0;
  uint64_t remote_port_ = 0;
  std::atomic<bool> broken_ = false;
  std::atomic<bool> flushed_ = false;
  verbs::PrivateData private_data_;  // ours until sent, the peer's once it arrives
};

}  // namespace dapple::udapl
