// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include <memory>

#include "ibverbs-glue/rdma_cm.hpp"

namespace dapple::rpma {

struct AddressDeleter {
  void operator()(rdma_addrinfo* list) const noexcept { rdma_freeaddrinfo(list); }
};
using Address = std::unique_ptr<rdma_addrinfo, AddressDeleter>;

// The kind of address: one to listen on, or a peer's.
enum class Side { kPassive, kActive };

// Null, after a logged line, if the address does not exist. port: may be null.
Address find_address(const char* node, const char* port, Side side) noexcept;

}  // namespace dapple::rpma
