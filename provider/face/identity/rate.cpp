// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/rate.hpp"

#include <stdio.h>
#include <string.h>

#include <iterator>

namespace dapple::face {
namespace {

// IBTA 14.2.5.6, and ibv_port_attr.
enum Speed : uint32_t { kSdr = 1, kDdr = 2, kQdr = 4, kFdr = 16, kEdr = 32, kHdr = 64, kNdr = 128 };
enum Width : uint32_t { k1x = 1, k4x = 2, k8x = 4, k2x = 16 };

constexpr struct {
  std::string_view rate;
  Speed speed;
  Width width;
} kRates[] = {
    {"2.5", kSdr, k1x}, {"5", kDdr, k1x},   {"10", kQdr, k1x},  {"20", kDdr, k4x},
    {"25", kEdr, k1x},  {"40", kQdr, k4x},  {"50", kEdr, k2x},  {"56", kFdr, k4x},
    {"100", kEdr, k4x}, {"200", kHdr, k4x}, {"400", kNdr, k4x}, {"800", kNdr, k8x},
};

}  // namespace

bool find_rate(std::string_view rate, soft::DeviceAttributes& attributes) {
  for (const auto& known : kRates) {
    if (known.rate != rate) continue;
    attributes.active_speed = known.speed;
    attributes.active_width = known.width;
    return true;
  }
  return false;
}

void list_rates(char (&text)[96]) {
  text[0] = '\0';
  size_t size = 0;
  for (const auto& known : kRates) {
    const char* separator = &known == kRates ? "" : &known == std::end(kRates) - 1 ? " or " : ", ";
    size += static_cast<size_t>(snprintf(text + size, sizeof text - size, "%s%.*s", separator,
                                         static_cast<int>(known.rate.size()), known.rate.data()));
  }
  snprintf(text + size, sizeof text - size, " (Gb/s)");
}

}  // namespace dapple::face
