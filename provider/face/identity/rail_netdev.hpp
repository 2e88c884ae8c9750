// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The netdev of an identity that has several devices on one netdev.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "provider/protocol/rails.hpp"
#include "provider/system/problem.hpp"

namespace dapple::face {

struct RailNetdev {
  std::string name;
  bool loopback = false;
  // Link-local addresses are no device's alone, so they do not count.
  uint32_t ipv4 = 0;
  uint32_t ipv6 = 0;

  void add(const uint8_t address[16]);
};

// True if the program's netdev is there and has an address of one family for each device; lo always has them. False:
// `problem` has one line.
bool check_rails(const soft::Rails& rails, std::span<const RailNetdev> netdevs, soft::Problem& problem);

}  // namespace dapple::face
