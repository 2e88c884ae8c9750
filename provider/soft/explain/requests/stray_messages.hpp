// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::explain {

// A queue pair gets this number. From now on, messages to numbers that no queue pair of this process has had are
// reported. After its end, peers may still send to it for a while.
void explain_strays(uint32_t qpn);

// The program sends a datagram. Reports the first one for each number that no queue pair of this host has, if it is for
// this host. Asks dappled then.
void explain_datagram(const Qp& qp, const roce::AddressVector& to, uint32_t qpn);

}  // namespace dapple::soft::explain
