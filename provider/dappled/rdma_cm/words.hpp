// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Words for people about ids and addresses.
#pragma once

#include <netinet/in.h>

#include "provider/dappled/rdma_cm/address.hpp"
#include "provider/dappled/rdma_cm/id.hpp"

namespace dapple::dappled::rdma_cm {

// A predicate of "the id".
const char* words_of(State state);

// "10.0.0.1", and ":4420" behind it if the address has a port.
class Text {
 public:
  explicit Text(const Address& address);
  const char* c_str() const { return text_; }

 private:
  char text_[INET6_ADDRSTRLEN + 16];
};

}  // namespace dapple::dappled::rdma_cm
