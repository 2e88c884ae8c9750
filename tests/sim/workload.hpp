// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Applications: they post random requests, some of them wrong.
#pragma once

#include <vector>

#include "tests/sim/party.hpp"
#include "tests/sim/plan.hpp"

namespace dapple::sim {

class Workload {
 public:
  Workload(uint64_t seed, Random& random, const Plan& plan, Referee& referee)
      : next_id_(mixed(seed) & ~uint64_t{0xFFFF}), random_(random), plan_(plan), referee_(referee) {}

  // Posts a request. False if the send queue has no room.
  bool post(Party& party);

 private:
  // The steps of making a request from random numbers.
  void choose_opcode(Party& party, Operation& operation);
  // XRC. Null: the request names none that the peer has.
  const XrcQueue* choose_queue(Party& party, Operation& operation);
  void fill_data(Party& party, Operation& operation);
  void fill_response(Party& party, Operation& operation);
  void fill_window(Party& party, Operation& operation);
  void fill_datagram(Party& party, Operation& operation);
  void spoil(Party& party, Operation& operation);
  uint32_t remote_key(Party& party, const Operation& operation);
  bool lay_out(Party& party, Operation& operation);
  uint32_t random_length(const Party& party, uint32_t most);

  uint64_t next_id_;
  Random& random_;
  const Plan& plan_;
  Referee& referee_;
  std::vector<std::byte> inline_bytes_;
};

}  // namespace dapple::sim
