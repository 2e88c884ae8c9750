// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/named_attributes.hpp"

#include <endian.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "udapl/core/ia.hpp"

namespace dapple::dat {
namespace {

std::string hex64(uint64_t network_order) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, be64toh(network_order));
  return text;
}

}  // namespace

void NamedAttributes::fill(const Ia& ia) {
  const dappledv_device_attr& coherence = ia.coherence();
  const std::pair<const char*, std::string> pairs[] = {
      {"DAT_IB_PROVIDER_NAME", "OFA"},
      {"DAT_IB_DEVICE_NAME", ibv_get_device_name(ia.context()->device)},
      {"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
      {"DAT_IB_RDMA_READ", ia.device().max_qp_rd_atom > 0 ? "TRUE" : "FALSE"},
      {"DAT_IB_NODE_GUID", hex64(ia.device().node_guid)},
      {"DAT_IB_TRANSPORT_MTU", std::to_string(128U << std::min(ia.port_attr().active_mtu, ia.settings().path_mtu))},
      {"DAT_IB_PORT_STATUS", ibv_port_state_str(ia.port_attr().state)},
      {"DAT_IB_PORT_NUMBER", std::to_string(ia.port())},
      {"DAT_EXTENSION_INTERFACE", ia.iwarp() ? "FALSE" : "TRUE"},
      {"DAT_IB_IMMED_DATA", ia.iwarp() ? "FALSE" : "TRUE"},
      {"DAT_IB_FETCH_AND_ADD", ia.has_atomics() ? "TRUE" : "FALSE"},
      {"DAT_IB_CMP_AND_SWAP", ia.has_atomics() ? "TRUE" : "FALSE"},
      {"DAT_IB_UD", "FALSE"},
      {"DAT_COUNTERS", "TRUE"},
      {"DAPPLE_COHERENCE", dappledv_coherence_str(coherence.coherence)},
      {"DAPPLE_COHERENCE_REASON", coherence.explanation},
      {"DAPPLE_LINE_SIZE", std::to_string(coherence.line_size)},
      {"DAPPLE_CLEAN_INSTRUCTION", coherence.clean_instruction},
      {"DAPPLE_CLEAN_INVALIDATE_INSTRUCTION", coherence.clean_invalidate_instruction},
      {"DAPPLE_TRANSPORT", ia.iwarp()                                             ? "iWARP"
                           : ia.port_attr().link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE"
                                                                                  : "InfiniBand"},
  };
  values_.reserve(std::size(pairs));  // keeps the pointers below valid
  attributes_.reserve(std::size(pairs));
  for (const auto& [name, value] : pairs) attributes_.push_back({name, values_.emplace_back(value).c_str()});
}

}  // namespace dapple::dat
