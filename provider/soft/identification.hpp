// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The IPv4 identifications that peers use. The ICRC covers the identification, which a UDP socket does not show; a
// receiver finds the one that explains the ICRC (roce::icrc_identification). That makes 2^16 of the 2^32 ICRCs right,
// so the identification must also be one that the peer would use now.
#ifndef DAPPLE_PROVIDER_SOFT_IDENTIFICATION_HPP
#define DAPPLE_PROVIDER_SOFT_IDENTIFICATION_HPP

#include <cstdint>

namespace dapple::soft {

// For one thread at a time.
class IdentificationCheck {
 public:
  // `peer`: an IPv4 address. `milliseconds`: of any clock that never goes back.
  bool plausible(uint32_t peer, uint16_t identification, uint64_t milliseconds);

 private:
  struct Entry {
    uint32_t peer = 0;
    uint16_t last = 0;
    bool known = false;
    uint64_t seen = 0;
  };
  static constexpr uint32_t kEntries = 256;  // a power of 2; for peers that share an entry the check is less strict
  Entry entries_[kEntries];
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_IDENTIFICATION_HPP
