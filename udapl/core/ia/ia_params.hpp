// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ia_params field of a dat.conf line: "netdev 0", "address 0" or "host 0" as the rdma_cm provider takes it, or
// "device port" as the original's other two providers take it. Further words are our name=value options
// (coherence=cpu).
#pragma once

#include <cstdint>
#include <string>

#include "ibverbs-glue/socket_address.hpp"
#include "udapl/core/error.hpp"

namespace dapple::udapl {

struct IaParams {
  std::string where;      // network device, address, host name or RDMA device
  uint32_t port = 0;      // 0: `where` is not an RDMA device
  std::string coherence;  // override for dappledv_query_device_override; empty if there is none

  // INVALID_PARAMETER and one logged line when text is malformed.
  static Result<IaParams> parse(const std::string& text);
};

// The local address to bind to, with port 0. INVALID_ADDRESS and one logged line that names what was not found, or
// INSUFFICIENT_RESOURCES.
Result<verbs::SocketAddress> resolve(const IaParams& params);

}  // namespace dapple::udapl
