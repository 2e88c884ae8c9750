// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Checks the limits of an endpoint against those of its device.
#pragma once

#include <algorithm>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

// The number of segments that an EP keeps of each request: none unless the device needs maintenance. With maintenance
// it is at least one, because an atomic has one buffer, whatever the limits are.
inline uint32_t kept_segments(const Ia& ia, uint32_t max_iov) {
  return ia.maintains_caches() ? std::max(1U, max_iov) : 0;
}

inline uint32_t max_request_segments(const EpAttr& attr) {
  return std::max({attr.max_request_iov, attr.max_rdma_read_iov, attr.max_rdma_write_iov});
}

// The limits of an EP that asks for none.
EpAttr with_defaults(const Ia& ia, EpAttr attr);
// INVALID_PARAMETER, and a line that names the attribute, if a limit exceeds the device's.
Result<> check(const Ia& ia, const EpAttr& attr);

// The notification that such an EP needs of its receive EVD, and the error if the EVD has another one.
EvdConfig recv_config(const EpAttr& attr);
Subtype conflict_with(EvdConfig config);

}  // namespace dapple::udapl
