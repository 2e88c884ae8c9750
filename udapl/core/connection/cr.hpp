// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/connection/ud_message.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Ep;

// Connection request. Accepting or rejecting consumes it. All calls are made with the control mutex held.
class Cr : public Object {
 public:
  static constexpr Kind kKind = Kind::kCr;
  static constexpr size_t kMaxRejectData = 144;  // bytes: the IBTA's 148 without the header that marks a consumer's
                                                 // reject

  // Takes ownership of the id. Throws std::bad_alloc and leaves the id with the caller.
  static Cr* create(Ia& ia, verbs::CmId& id, const verbs::CmEvent& event);
  // Drops the request; the peer sees a rejection that is not the consumer's. An EP that came with the request is
  // released.
  static Result<> free(Cr& cr);

  // The EP of this request: a reserved one, or one that was made for it and is destroyed with it unless the request is
  // accepted.
  void hold(Ep& ep, bool made_for_it);
  Ep* local_ep() const { return ep_; }
  void forget_ep() { ep_ = nullptr; }
  // Lets another service point answer the request.
  verbs::CmId give_up_id() { return std::move(id_); }

  // The EP takes over the connection. The CR is consumed, unless the caller made the error. ep is null if the request
  // has its own EP.
  Result<> accept(Ep* ep, std::span<const uint8_t> private_data);
  Result<> reject(std::span<const uint8_t> private_data);
  // Hands the request to the consumer of another service point of this process on the same address. An error changes
  // nothing.
  Result<> hand_off(uint64_t conn_qual);

  const sockaddr* remote_address() const { return rdma_get_peer_addr(id_.get()); }
  uint64_t remote_port() const;
  uint64_t local_port() const;
  // True if the request came for datagrams: only a datagram endpoint can accept it.
  bool is_datagrams() const { return datagrams_; }
  std::span<const uint8_t> private_data() const {
    return datagrams_ ? UdReceived(offer_.private_data).data : offer_.private_data;
  }

  void on_connection_event(const verbs::CmEvent& event);

 private:
  friend class Arena<Cr>;
  Cr(Ia& ia, const rdma_cm_id& id, const verbs::CmEvent& event);
  void give_back_ep();
  int reject_connection(std::span<const uint8_t> private_data);
  int reject_datagrams(std::span<const uint8_t> private_data);

  verbs::CmId id_;
  const bool datagrams_;
  const verbs::CmEvent offer_;  // the event of the request
  Ep* ep_ = nullptr;
  bool ep_made_for_it_ = false;
  bool peer_gone_ = false;
};

}  // namespace dapple::udapl
