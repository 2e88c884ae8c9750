// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// The address of a GID for people: "10.0.0.1" or "fe80::1", and with a port "10.0.0.1:4420" or "[fe80::1]:4420".
class AddressText {
 public:
  explicit AddressText(const uint8_t gid[16], uint16_t port = 0);
  const char* c_str() const { return text_; }

 private:
  char text_[64];
};

}  // namespace dapple::soft
