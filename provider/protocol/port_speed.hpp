// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The meaning of ibv_port_attr's active_speed and active_width (IBTA 14.2.5.6, PortInfo).
#pragma once

#include <stdint.h>

namespace dapple::soft {

// The speed of one lane, in tenths of Gb/s, and its name.
struct LaneSpeed {
  uint32_t active_speed;
  uint32_t rate;
  const char* name;
};
inline constexpr LaneSpeed kLaneSpeeds[] = {
    {1, 25, "SDR"},   {2, 50, "DDR"},   {4, 100, "QDR"},    {8, 100, "FDR10"},  {16, 140, "FDR"},
    {32, 250, "EDR"}, {64, 500, "HDR"}, {128, 1000, "NDR"}, {256, 2000, "XDR"},
};

// An unknown number means the lowest speed.
constexpr const LaneSpeed& lane_speed(uint32_t active_speed) {
  for (const LaneSpeed& speed : kLaneSpeeds) {
    if (speed.active_speed == active_speed) return speed;
  }
  return kLaneSpeeds[0];
}

constexpr uint32_t lanes_of(uint32_t active_width) {
  switch (active_width) {
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace dapple::soft
