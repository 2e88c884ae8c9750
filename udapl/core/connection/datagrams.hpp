// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The peers of a datagram endpoint, which has one UD queue pair, ready from the start, and no connection to lose. Each
// connect and each accept is an exchange of its own (UdConnection), may run beside others, and brings an address. The
// Ep's state sums up the exchanges.
//
// Threads: the caller holds the control mutex, except for has_address().
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "ibverbs-glue/rdma_cm.hpp"
#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/connection/address_table.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Ep;
class Ia;
class UdConnection;
struct UdReceived;

class Datagrams {
 public:
  static constexpr uint32_t kQkey = RDMA_UDP_QKEY;  // the connection manager's own messages to peers

  // Makes a new UD queue pair ready to send and to receive. Returns an errno value.
  static int bring_up(ibv_qp* qp, const Ia& ia);

  explicit Datagrams(Ep& ep) : ep_(ep) {}
  Ep& ep() const { return ep_; }

  // Begins on an Ep that Ep::connect() has checked. timeout is in microseconds. The result arrives as an event.
  Result<> connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                   std::span<const uint8_t> private_data);
  // Answers a request on an Ep that Connection::check_can_accept() has checked. A failure is an event. Throws
  // std::bad_alloc with nothing changed.
  void accept(verbs::CmId& request, const UdReceived& message, std::span<const uint8_t> reply);

  // INVALID_PARAMETER for anything but a connection or an address of this endpoint. The consumer ensures that no
  // datagram to the address is still to be sent.
  Result<> free_connection(const void* connection);
  Result<> free_address(ibv_ah* address);
  // Any thread, without a lock.
  bool has_address(const ibv_ah* address) const { return addresses_.contains(address); }
  // Ends all exchanges, without an event.
  void abandon();
  // Also frees all addresses. The queue pair with the former number must have been destroyed.
  void clear(uint32_t former_qp_num);

  // The exchanges call these. add_address(): an exchange has found its peer's address, which now belongs to this
  // object. Null without memory. on_end(): an exchange has ended.
  ibv_ah* add_address(verbs::Ah address);
  void on_end(UdConnection& connection, EventKind kind);

 private:
  void update_state();

  Ep& ep_;
  AddressTable addresses_;
  ObjectList connections_;
  bool established_ = false;  // at least one exchange was
};

}  // namespace dapple::udapl
