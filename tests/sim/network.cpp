// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/network.hpp"

#include <algorithm>

#include "roce/packet/big_endian.hpp"
#include "tests/roce-support/crc32.hpp"
#include "tests/roce-support/frame.hpp"

namespace dapple::sim {

roce::IcrcAddresses Network::addresses(uint32_t from, uint32_t to) const {
  roce::IcrcAddresses addresses = roce::test::sample_addresses(plan_.ipv6);
  const size_t last = plan_.ipv6 ? 15 : 3;
  addresses.source[last] = static_cast<uint8_t>(1 + from);
  addresses.destination[last] = static_cast<uint8_t>(1 + to);
  return addresses;
}

void Network::cut(uint32_t a, uint32_t b, roce::Time until) {
  cut_until_[a][b] = cut_until_[b][a] = until;
}

void Network::send(uint32_t from, uint32_t to, uint32_t life, std::span<const std::byte> transport,
                   const std::optional<roce::Acknowledgement>& along) {
  Flight flight;
  flight.from = from;
  flight.to = to;
  flight.life = life;
  flight.along = along;
  flight.transport.assign(transport.begin(), transport.end());
  const roce::IcrcAddresses ends = addresses(from, to);
  flight.icrc =
      roce::icrc_of(roce::icrc_prefix(ends, transport.size(), roce::test::crc32), transport, roce::test::crc32);
  referee_.note("send", from << 8 | to, static_cast<uint64_t>(transport[0]), roce::load_be32(transport.data() + 8),
                flight.icrc);
  if (pcap != nullptr) pcap->write(referee_.now, roce::test::frame_of(ends, transport));
  if (has_faults && random_.in_thousand(plan_.duplication)) launch(flight);
  launch(std::move(flight));
}

void Network::launch(Flight flight) {
  roce::Time delay = plan_.delay;
  bool is_reordered = false;
  if (has_faults) {
    if (cut_until_[flight.from][flight.to] > referee_.now || random_.in_thousand(plan_.loss)) {
      referee_.note("lost", flight.icrc);
      return;
    }
    if (random_.in_thousand(plan_.corruption)) {
      const uint64_t bit = random_.below(flight.transport.size() * 8);
      flight.transport[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    is_reordered = random_.in_thousand(plan_.reordering);
    if (is_reordered) delay += random_.below(plan_.longest_reordering);
  }
  roce::Time& last = last_arrival_[flight.from][flight.to];
  const roce::Time arrival = referee_.now + delay;
  if (!is_reordered) last = std::max(last, arrival);
  deliver_at_(is_reordered ? arrival : last, std::move(flight));
}

bool Network::is_intact(const Flight& flight) const {
  const roce::IcrcAddresses ends = addresses(flight.from, flight.to);
  return flight.icrc == roce::icrc_of(roce::icrc_prefix(ends, flight.transport.size(), roce::test::crc32),
                                      flight.transport, roce::test::crc32);
}

}  // namespace dapple::sim
