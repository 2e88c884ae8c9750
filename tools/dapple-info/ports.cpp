// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ports.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace dapple::info {
namespace {

// The size in bytes of all entries must fit into a 16-bit field of the kernel's interface.
constexpr size_t kMaxGids = 1024;

std::string type_of(uint32_t type, const std::string& protocol) {
  if (protocol == "iw") return "iWARP";
  switch (type) {
    case IBV_GID_TYPE_IB:
      return "IB";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "";
  }
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, gid.raw, text, sizeof text) ? text : "";
}

std::vector<Gid> gids_of(ibv_context* context, uint32_t port, const std::string& protocol) {
  std::vector<ibv_gid_entry> entries(kMaxGids);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  entries.resize(count < 0 ? 0 : static_cast<size_t>(count));
  std::vector<Gid> gids;
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num != port) continue;
    gids.push_back({entry.gid_index, type_of(entry.gid_type, protocol), text_of(entry.gid)});
  }
  return gids;
}

}  // namespace

double gbit_s_of(unsigned int width, unsigned int speed) {
  // Bits of IBTA's PortInfo: lanes by LinkWidthActive, Gb/s of a lane by LinkSpeedActive.
  constexpr std::pair<unsigned int, double> kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  constexpr std::pair<unsigned int, double> kSpeeds[] = {{1, 2.5}, {2, 5},   {4, 10},    {8, 10},   {16, 14},
                                                         {32, 25}, {64, 50}, {128, 100}, {256, 200}};
  const auto found = [](const auto& table, unsigned int bits) {
    for (const auto& [key, value] : table) {
      if (key == bits) return value;
    }
    return 0.0;
  };
  return found(kLanes, width) * found(kSpeeds, speed);
}

Port read_port(ibv_context* context, uint32_t number, const std::string& protocol) {
  Port port;
  port.number = number;
  ibv_port_attr attr{};
  if (ibv_query_port(context, static_cast<uint8_t>(number), &attr) == 0) {
    if (attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= IBV_MTU_4096) port.mtu_bytes = 128U << attr.active_mtu;
    port.gbit_s = gbit_s_of(attr.active_width, attr.active_speed);
  }
  port.gids = gids_of(context, number, protocol);
  return port;
}

void add_names(Port& port, const std::string& device, const std::vector<tools::NamedPort>& named) {
  for (const tools::NamedPort& other : named) {
    if (other.port.device != device || other.port.number != port.number) continue;
    port.addresses = other.port.addresses;
    port.netdev = other.port.netdev;
    // Without an address no name can open the port.
    if (!port.addresses.empty()) port.ia = other.ia;
  }
}

void add_port_rows(const std::string& device, const std::vector<Port>& ports, Rows& port_rows, Rows& gid_rows) {
  for (const Port& port : ports) {
    const std::string number = std::to_string(port.number);
    port_rows.push_back({device, number, port.netdev, port.mtu_bytes ? std::to_string(port.mtu_bytes) : "",
                         port.gbit_s > 0 ? fmt::format("{:g} Gb/s", port.gbit_s) : "", port.ia,
                         fmt::format("{}", fmt::join(port.addresses, " "))});
    for (const Gid& gid : port.gids) {
      gid_rows.push_back({device, number, std::to_string(gid.index), gid.type, gid.gid});
    }
  }
}

Json port_as_json(const Port& port) {
  Json gids = Json::array();
  for (const Gid& gid : port.gids) gids.push_back({{"index", gid.index}, {"type", gid.type}, {"gid", gid.gid}});
  return {{"mtu_bytes", port.mtu_bytes ? Json(port.mtu_bytes) : Json()},
          {"speed_gbit_s", port.gbit_s > 0 ? Json(rounded(port.gbit_s)) : Json()},
          {"open_as", port.ia},
          {"addresses", port.addresses},
          {"gids", gids}};
}

}  // namespace dapple::info
