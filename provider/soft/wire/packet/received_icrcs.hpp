// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ICRCs of received packets. Their parts repeat from packet to packet, so the last ones are kept. For one thread at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roce/packet/icrc.hpp"

namespace dapple::soft {

class ReceivedIcrcs {
 public:
  uint32_t prefix_of(const roce::IcrcAddresses& addresses, size_t transport_size);
  // roce::icrc_identification() of the packet with this number among those that the kernel merged.
  int32_t identification_of(uint32_t received, uint32_t expected, size_t transport_size, uint32_t number);

 private:
  // Packets of a long message repeat the same identification at the same number.
  struct Explained {
    uint32_t difference = 0;  // between two ICRCs
    int32_t identification = 0;
    size_t transport_size = 0;
  };
  static constexpr uint32_t kMaxMerged = 64;
  Explained explained_[kMaxMerged];
  // ICRC prefixes of the last packets of some sizes.
  struct Prefix {
    roce::IcrcAddresses addresses;
    size_t transport_size = 0;
    uint32_t value = 0;
  };
  static constexpr size_t kPrefixes = 4;
  Prefix prefixes_[kPrefixes];
};

}  // namespace dapple::soft
