// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Why the device refuses an access to memory: the key, its protection domain, its rights or its bytes.
#pragma once

#include <cstdint>
#include <span>

#include "provider/soft/explain/failures.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/ports.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::explain {

// Of the first segment that the queue pair may not use. Empty if it may use all of them.
Reason refused_segment(const Qp& qp, uint32_t domain, std::span<const roce::Segment> segments, uint32_t rights);
// Of a peer's access, which has been refused. A length of 0 stands for the whole region.
Reason refused_range(const Qp& qp, const roce::RemoteRange& range, uint32_t rights);

}  // namespace dapple::soft::explain
