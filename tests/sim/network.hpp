// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A network between nodes that loses, delays, repeats, reorders and damages packets, and is sometimes cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"
#include "tests/roce-support/pcap.hpp"
#include "tests/sim/plan.hpp"
#include "tests/sim/referee.hpp"

namespace dapple::sim {

struct Flight {
  uint32_t from = 0;  // nodes
  uint32_t to = 0;
  // Packets of an earlier incarnation of a queue pair are not delivered: connection managers wait until they are gone.
  uint32_t life = 0;
  uint32_t icrc = 0;
  std::vector<std::byte> transport;  // from the BTH to the pad
  std::optional<roce::Acknowledgement> along;
};

class Network {
 public:
  // deliver_at(time, flight) must call arrived() at that time.
  using DeliverAt = std::function<void(roce::Time, Flight&&)>;

  Network(const Plan& plan, Random& random, Referee& referee, DeliverAt deliver_at)
      : plan_(plan), random_(random), referee_(referee), deliver_at_(std::move(deliver_at)) {}

  roce::test::PcapFile* pcap = nullptr;
  bool has_faults = true;

  void send(uint32_t from, uint32_t to, uint32_t life, std::span<const std::byte> transport,
            const std::optional<roce::Acknowledgement>& along = {});
  // True if the ICRC is right. Damaged packets end here.
  bool is_intact(const Flight& flight) const;
  // Until that time no packet passes between the two nodes.
  void cut(uint32_t a, uint32_t b, roce::Time until);

 private:
  roce::IcrcAddresses addresses(uint32_t from, uint32_t to) const;
  void launch(Flight flight);

  static constexpr size_t kMaxNodes = 4;

  const Plan& plan_;
  Random& random_;
  Referee& referee_;
  DeliverAt deliver_at_;
  std::array<std::array<roce::Time, kMaxNodes>, kMaxNodes> cut_until_{};
  std::array<std::array<roce::Time, kMaxNodes>, kMaxNodes> last_arrival_{};
};

}  // namespace dapple::sim
