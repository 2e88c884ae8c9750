// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Everything outside of rdma_cm's own logic: the network, the programs' descriptors, random numbers.
#pragma once

#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/rdma_cm/ids/id.hpp"

namespace dapple::dappled::rdma_cm {

// No call may call the service back.
class World {
 public:
  virtual void send(const cm::Path& path, const cm::Mad& mad) = 0;
  virtual uint64_t random() = 0;
  virtual const DeviceTable& devices() = 0;
  // The devices that the channel's program sees.
  virtual const soft::Rails& rails(const Channel& channel) = 0;
  // The index of the id's GID in the order of the channel's program.
  virtual uint32_t gid_index(const CmId& id) = 0;
  // `source`: the address that the channel's program is bound to, or the wildcard of the family; becomes the address
  // from which packets to `destination` go. 0 or an errno.
  virtual int route(const Channel& channel, const Address& destination, Address& source) = 0;
  // 0 if the kernel knows the link-layer address of the neighbour on the way from `source` to `destination`, or if none
  // is needed. ENODATA: the kernel has been told to ask for that address, and Service::neighbour_answers() follows when
  // `neighbour` answers. Else an errno.
  virtual int find_neighbour(const Address& source, const Address& destination, Neighbour& neighbour) = 0;
  // 0 if the address is one of this host's, with RDMA or without; or an errno.
  virtual int check_own(const Address& address) = 0;
  // Tells whether addresses of IPv6 are for IPv6 alone unless the program says otherwise (net.ipv6.bindv6only).
  virtual bool separates_families() = 0;
  // An event was appended to channel.events.
  virtual void wake(Channel& channel) = 0;
  // Writes an entry of kJournalEntrySize bytes. The entries' indexes follow one another.
  virtual void write_journal(Channel& channel, uint32_t index, std::span<const std::byte> entry) = 0;

 protected:
  ~World() = default;
};

}  // namespace dapple::dappled::rdma_cm
