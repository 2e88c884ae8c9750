// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/named_attributes.hpp"

#include <endian.h>
#include <netinet/in.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "ibverbs-glue/capabilities.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {
namespace {

ibv_gid mapped_gid(const sockaddr* address) {
  ibv_gid gid{};
  if (address->sa_family == AF_INET6) {
    std::memcpy(&gid, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, sizeof gid);
  } else {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(&gid.raw[12], &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  }
  return gid;
}

// The values are spelled as in the original, because consumers compare strings.
std::string to_guid(uint64_t network_order) {
  const uint64_t guid = be64toh(network_order);
  const auto part = [guid](int shift) { return static_cast<unsigned int>(guid >> shift & 0xffff); };
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", part(48), part(32), part(16), part(0));
  return text;
}

// The GID of the IA's connections: on Ethernet it represents the IA's address, otherwise it is the port's first GID.
std::string to_gid(const Ia& ia) {
  ibv_gid gid = mapped_gid(ia.address());
  if (ia.port_attr().link_layer != IBV_LINK_LAYER_ETHERNET && ibv_query_gid(ia.context(), ia.port(), 0, &gid)) gid = {};
  std::string text;
  for (size_t i = 0; i < sizeof gid.raw; i += 2) {
    char part[8];
    std::snprintf(part, sizeof part, "%s%02x%02x", i ? ":" : "", gid.raw[i], gid.raw[i + 1]);
    text += part;
  }
  return text;
}

const char* to_port_status(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_NOP:
      return "NOP";
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "DEFER";
  }
  return "UNKNOWN";
}

const char* truth(bool value) {
  return value ? "TRUE" : "FALSE";
}

// "TRUE", "FALSE" or "UNKNOWN".
const char* answer(uint8_t value) {
  return value == DAPPLEDV_ANSWER_UNKNOWN ? "UNKNOWN" : truth(value == DAPPLEDV_ANSWER_YES);
}

using Capabilities = std::optional<ibv_device_attr_ex>;

// The same; UNKNOWN if the device did not answer.
const char* flag(const Capabilities& capabilities, uint64_t bit) {
  return capabilities ? truth((capabilities->device_cap_flags_ex & bit) != 0) : "UNKNOWN";
}

const char* window(const Capabilities& capabilities, unsigned int type) {
  return capabilities ? truth(verbs::has_windows(capabilities->orig_attr, type)) : "UNKNOWN";
}

constexpr const char* kFirstOfOurs = "DAPPLE_COHERENCE";

}  // namespace

void NamedAttributes::fill(const Ia& ia) {
  const dappledv_device_attr& coherence = ia.coherence();
  const Capabilities capabilities = verbs::query_capabilities(ia.context());
  const std::pair<const char*, std::string> pairs[] = {
      {"DAT_IB_PROVIDER_NAME", "CMA"},
      {"DAT_IB_DEVICE_NAME", ibv_get_device_name(ia.context()->device)},
      {"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
      {"DAT_IB_RDMA_READ", ia.device().max_qp_rd_atom > 0 ? "TRUE" : "FALSE"},
      {"DAT_IB_NODE_GUID", to_guid(ia.device().node_guid)},
      {"DAT_IB_GID", to_gid(ia)},
      {"DAT_IB_TRANSPORT_MTU", std::to_string(ia.mtu())},
      {"DAT_IB_PORT_STATUS", to_port_status(ia.port_attr().state)},
      {"DAT_IB_PORT_NUMBER", std::to_string(ia.port())},
      {"DAT_EXTENSION_INTERFACE", truth(ia.has_extensions())},
      {"DAT_IB_FETCH_AND_ADD", truth(ia.offers_extensions() && ia.has_atomics())},
      {"DAT_IB_CMP_AND_SWAP", truth(ia.offers_extensions() && ia.has_atomics())},
      {"DAT_IB_IMMED_DATA", truth(ia.has_extensions())},
      {"DAT_IB_UD", truth(ia.offers_extensions() && ia.rules().has_datagrams)},
      {"DAT_COUNTERS", truth(ia.has_extensions())},
      {kFirstOfOurs, dappledv_coherence_str(coherence.coherence)},
      {"DAPPLE_COHERENCE_REASON", coherence.explanation},
      {"DAPPLE_COHERENCE_CERTAINTY", dappledv_certainty_str(coherence.certainty)},
      {"DAPPLE_SYNC_FOR_READ", truth(coherence.sync_for_device_required)},
      {"DAPPLE_SYNC_FOR_WRITE", truth(coherence.sync_for_cpu_required)},
      {"DAPPLE_SYNC_COMPLETE", truth(coherence.sync_complete)},
      {"DAPPLE_NONCOHERENT_LMR", truth(ia.memory_coherence(true).sync_supported)},
      {"DAPPLE_PERSISTENT_LMR", truth(coherence.persist_supported)},
      {"DAPPLE_LINE_SIZE", std::to_string(coherence.line_size)},
      {"DAPPLE_WRITEBACK_GRANULE", std::to_string(coherence.writeback_granule)},
      {"DAPPLE_CLEAN_INSTRUCTION", coherence.clean_instruction},
      {"DAPPLE_CLEAN_INVALIDATE_INSTRUCTION", coherence.clean_invalidate_instruction},
      {"DAPPLE_CACHES_PERSISTENT", answer(coherence.caches_persistent)},
      {"DAPPLE_PERSIST_INSTRUCTION", coherence.persist_instruction},
      {"DAPPLE_PCI_RELAXED_ORDERING", answer(coherence.pci_relaxed_ordering)},
      {"DAPPLE_PCI_NO_SNOOP", answer(coherence.pci_no_snoop)},
      {"DAPPLE_ATOMIC_WRITE", flag(capabilities, verbs::kDeviceAtomicWrite)},
      {"DAPPLE_FLUSH_VISIBILITY", flag(capabilities, verbs::kDeviceFlushGlobal)},
      {"DAPPLE_FLUSH_PERSISTENCE", flag(capabilities, verbs::kDeviceFlushPersistent)},
      {"DAPPLE_ON_DEMAND_PAGING",
       capabilities ? truth((capabilities->odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) : "UNKNOWN"},
      {"DAPPLE_WINDOW_TYPE_1", window(capabilities, IBV_DEVICE_MEM_WINDOW)},
      {"DAPPLE_WINDOW_TYPE_2A", window(capabilities, IBV_DEVICE_MEM_WINDOW_TYPE_2A)},
      {"DAPPLE_WINDOW_TYPE_2B", window(capabilities, IBV_DEVICE_MEM_WINDOW_TYPE_2B)},
      {"DAPPLE_TRANSPORT", ia.rules().iwarp                                       ? "iWARP"
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

}  // namespace dapple::udapl
