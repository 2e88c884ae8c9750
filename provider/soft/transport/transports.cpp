// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/transports.hpp"

#include <errno.h>
#include <string.h>

#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/links/delivery.hpp"
#include "provider/soft/links/wanted.hpp"
#include "provider/soft/transport/placement_wanted.hpp"

namespace dapple::soft {

bool Transports::open(const Slot& slot, bool instrumented, Problem& problem) {
  uint64_t most_bytes = 0;
  if (!most_ring_bytes(most_bytes)) {
    problem.set(EINVAL, "DAPPLE_SAME_HOST_MIB must be a number of MiB");
    return false;
  }
  table_.open(*slot.transports);
  Transport transport = same_host_transport(instrumented);
  if (transport == Transport::kSharedMemory) {
    if (placement_wanted() && publication_.open()) links_.place_by(publication_);
    transport = links_.open(slot.number, slot.lease, slot.counters->same_host, table_, most_bytes);
  } else {
    links_.stay_closed(transport);
  }
  if (transport != Transport::kSharedMemory) table_.set_no_rings(transport);
  return true;
}

ChosenTransport Transports::choose(const Path& path) {
  ChosenTransport chosen;
  TransportRow row;
  memcpy(row.source, path.source, sizeof row.source);
  memcpy(row.destination, path.destination, sizeof row.destination);
  row.transport = delivery(path);
  if (row.transport == Transport::kSharedMemory) {
    row.slot = static_cast<uint16_t>(slot_of(path.destination_qpn));
    chosen.ring = links_.get(row.slot, row.transport);
  }
  if (chosen.ring != nullptr) row.ring = chosen.ring->number();
  chosen.row = table_.take(row);
  // The ring may have ended before the table had its row.
  if (chosen.ring != nullptr && chosen.ring->broken()) table_.end_ring(row.ring, chosen.ring->end());
  return chosen;
}

ChosenTransport Transports::choose_for_datagrams() {
  TransportRow row;
  row.transport = Transport::kDatagrams;
  return {nullptr, table_.take(row)};
}

void Transports::leave(ChosenTransport transport) {
  links_.put(transport.ring);
  table_.leave(transport.row);
}

void Transports::fork_child() {
  links_.fork_child();
  publication_.close_in_child();
}

}  // namespace dapple::soft
