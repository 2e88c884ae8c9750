// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/packet/received_icrcs.hpp"

#include <cassert>

#include "provider/soft/wire/packet/crc.hpp"

namespace dapple::soft {

int32_t ReceivedIcrcs::identification_of(uint32_t received, uint32_t expected, size_t transport_size, uint32_t number) {
  assert(received != expected);
  Explained& last = explained_[number % kMaxMerged];
  if (last.difference != (received ^ expected) || last.transport_size != transport_size) {
    last.difference = received ^ expected;
    last.transport_size = transport_size;
    last.identification = roce::icrc_identification(received, expected, transport_size);
  }
  return last.identification;
}

uint32_t ReceivedIcrcs::prefix_of(const roce::IcrcAddresses& addresses, size_t transport_size) {
  assert(transport_size > 0 && transport_size % 4 == 0);
  Prefix& last = prefixes_[transport_size / 4 % kPrefixes];
  if (last.transport_size != transport_size || last.addresses != addresses) {
    last = {addresses, transport_size, roce::icrc_prefix(addresses, transport_size, crc32)};
  }
  return last.value;
}

}  // namespace dapple::soft
