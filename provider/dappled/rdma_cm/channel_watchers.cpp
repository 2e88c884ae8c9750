// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's reports to observers: the counters, and the packets of QP 1 for files.
#include <string.h>

#include "provider/dappled/rdma_cm/channel_server.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"
#include "provider/network/gid.hpp"

namespace dapple::dappled::rdma_cm {

void ChannelServer::tell(soft::CmStatus& status) const {
  status.channels = channels();
  if (wire_ != nullptr) status.no_datagram = wire_->rejected();
  if (service_ == nullptr) return;
  const cm::Manager& manager = service_->manager();
  const cm::Counters& count = manager.counters();
  status.ids = service_->ids();
  status.resolving = service_->resolving();
  status.listeners = manager.listeners();
  status.connections = manager.records() - manager.remembered();
  status.half_open = manager.half_open();
  status.remembered = manager.remembered();
  status.established = count.established;
  status.received = count.received;
  status.sent = count.sent;
  status.resent = count.resent;
  status.timed_out = count.timed_out;
  status.duplicates = count.duplicates;
  status.unserved = count.unserved;
  status.stale = count.stale;
  status.over_backlog = count.over_backlog;
  status.over_limit = count.over_limit;
  status.evicted = count.evicted;
  status.forgotten = count.forgotten;
  status.unexpected = count.unexpected;
  status.unknown = count.unknown;
  status.foreign = count.foreign;
  status.unsupported = count.unsupported;
  status.malformed = count.malformed;
}

void ChannelServer::write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class,
                          uint8_t hop_limit, std::span<const std::byte> transport) {
  if (captures_.count() == 0) return;
  Gid source{};
  if (addresses.ipv6) {
    memcpy(source.data(), addresses.source, source.size());
  } else {
    soft::ipv4_gid(addresses.source, source.data());
  }
  // This dappled has sent the packet itself, so the files have it already.
  if (direction == Direction::kReceived && find_gid(devices_, source, 0).device != nullptr) return;
  captures_.write(direction, addresses, traffic_class, hop_limit, transport);
}

}  // namespace dapple::dappled::rdma_cm
