// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The recent answers of an IA to requests for datagrams. A reply may be lost or late. Then the peer's kernel repeats
// its request some four seconds later, although the consumer has already answered.
//
// All calls are made with the control mutex held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ibverbs-glue/socket_address.hpp"
#include "udapl/core/connection/ud_message.hpp"

namespace dapple::udapl {

struct UdReply {
  verbs::SocketAddress peer;
  uint32_t peer_qp_num;
  uint32_t serial;
  uint32_t qp_num;  // the queue pair that the reply named
  int64_t time_ns;
  UdMessage message;
};

class UdReplies {
 public:
  // Remembers a reply, and forgets the oldest if there are many. Without memory the reply is not remembered.
  void remember(const UdReply& reply) noexcept;
  // The reply to that request, or null.
  const UdReply* find(const sockaddr* peer, const UdReceived& request) const;
  // Forgets the replies that named this queue pair.
  void forget(uint32_t qp_num);

 private:
  static constexpr size_t kMax = 256;
  std::vector<UdReply> replies_;
  size_t oldest_ = 0;
};

}  // namespace dapple::udapl
