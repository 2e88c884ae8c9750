// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/dappled/rdma_cm/ids/address.hpp"

namespace dapple::dappled::rdma_cm {

// Implements World::route() by the network namespace's routes. Sends nothing.
int find_route(const Address& destination, Address& source);

// Implements World::check_own().
int check_own_address(const Address& address);

// The range of ephemeral ports of this network namespace; the kernel's default if it cannot be read.
void ephemeral_ports(uint16_t& first, uint16_t& last);

// net.ipv6.bindv6only of this network namespace; false if it cannot be read.
bool ipv6_binds_alone();

}  // namespace dapple::dappled::rdma_cm
