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

const char* truth(bool value) {
  return value ? "TRUE" : "FALSE";
}

// "TRUE", "FALSE" or "UNKNOWN".
const char* answer(uint8_t value) {
  return value == DAPPLEDV_ANSWER_UNKNOWN ? "UNKNOWN" : truth(value == DAPPLEDV_ANSWER_YES);
}

constexpr const char* kFirstOfOurs = "DAPPLE_COHERENCE";

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
      {kFirstOfOurs, dappledv_coherence_str(coherence.coherence)},
      {"DAPPLE_COHERENCE_REASON", coherence.explanation},
      {"DAPPLE_COHERENCE_CERTAINTY", dappledv_certainty_str(coherence.certainty)},
      {"DAPPLE_SYNC_FOR_READ", truth(coherence.sync_for_device_required)},
      {"DAPPLE_SYNC_FOR_WRITE", truth(coherence.sync_for_cpu_required)},
      {"DAPPLE_SYNC_COMPLETE", truth(coherence.sync_complete)},
      {"DAPPLE_NONCOHERENT_LMR", truth(ia.region_coherence().sync_supported)},
      {"DAPPLE_LINE_SIZE", std::to_string(coherence.line_size)},
      {"DAPPLE_WRITEBACK_GRANULE", std::to_string(coherence.writeback_granule)},
      {"DAPPLE_CLEAN_INSTRUCTION", coherence.clean_instruction},
      {"DAPPLE_CLEAN_INVALIDATE_INSTRUCTION", coherence.clean_invalidate_instruction},
      {"DAPPLE_CACHES_PERSISTENT", answer(coherence.caches_persistent)},
      {"DAPPLE_PCI_RELAXED_ORDERING", answer(coherence.pci_relaxed_ordering)},
      {"DAPPLE_PCI_NO_SNOOP", answer(coherence.pci_no_snoop)},
      {"DAPPLE_ATOMIC_WRITE", answer(coherence.atomic_write)},
      {"DAPPLE_FLUSH_VISIBILITY", answer(coherence.flush_visibility)},
      {"DAPPLE_FLUSH_PERSISTENCE", answer(coherence.flush_persistence)},
      {"DAPPLE_ON_DEMAND_PAGING", answer(coherence.on_demand_paging)},
      {"DAPPLE_WINDOW_TYPE_1", answer(coherence.window_type_1)},
      {"DAPPLE_WINDOW_TYPE_2A", answer(coherence.window_type_2a)},
      {"DAPPLE_WINDOW_TYPE_2B", answer(coherence.window_type_2b)},
      {"DAPPLE_TRANSPORT", ia.iwarp()                                             ? "iWARP"
                           : ia.port_attr().link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE"
                                                                                  : "InfiniBand"},
  };
  values_.reserve(std::size(pairs));  // keeps the pointers below valid
  attributes_.reserve(std::size(pairs));
  for (const auto& [name, value] : pairs) {
    if (name == kFirstOfOurs) first_of_ours_ = attributes_.size();
    attributes_.push_back({name, values_.emplace_back(value).c_str()});
  }
}

}  // namespace dapple::dat
