// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Words for people about ids and addresses.
#pragma once

#include "provider/dappled/rdma_cm/ids/address.hpp"
#include "provider/dappled/rdma_cm/ids/id.hpp"
#include "provider/network/address_text.hpp"

namespace dapple::dappled::rdma_cm {

// A predicate of "the id".
const char* words_of(State state);

inline soft::AddressText text_of(const Address& address) {
  return soft::AddressText(address.gid.data(), address.port);
}

}  // namespace dapple::dappled::rdma_cm
