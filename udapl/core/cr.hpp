// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::dat {

class Ep;
class Psp;

// Connection request. Accepting or rejecting consumes it. All calls are made with the control mutex held.
class Cr : public Object {
 public:
  static constexpr Kind kKind = Kind::kCr;
  static constexpr size_t kMaxRejectData = 144;  // bytes: the IBTA's 148 less the header that marks a consumer's reject

  static Cr* create(Psp& psp, verbs::CmId id, const verbs::CmEvent& event);
  // Drops the request; the peer sees a rejection that is not the consumer's.
  static Result<> free(Cr& cr);

  // The EP takes over the connection; the CR is consumed, unless the error is one of the caller's making.
  Result<> accept(Ep& ep, std::span<const uint8_t> private_data);
  Result<> reject(std::span<const uint8_t> private_data);

  const sockaddr* remote_address() const { return rdma_get_peer_addr(id_.get()); }
  uint64_t remote_port() const;
  std::span<const uint8_t> private_data() const { return {private_data_.data(), private_data_size_}; }
  uint8_t responder_resources() const { return responder_resources_; }
  uint8_t initiator_depth() const { return initiator_depth_; }

  void on_connection_event(const verbs::CmEvent& event);

 private:
  friend class Arena<Cr>;
  Cr(Ia& ia, verbs::CmId id, const verbs::CmEvent& event);

  verbs::CmId id_;
  uint8_t responder_resources_;
  uint8_t initiator_depth_;
  bool peer_gone_ = false;
  size_t private_data_size_;
  std::array<uint8_t, verbs::kMaxPrivateData> private_data_;
};

}  // namespace dapple::dat
