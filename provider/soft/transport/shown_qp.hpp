// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// The row in which `rdma resource` shows a queue pair. Under its lock.
ResourceRow row_of(const Qp& qp);

}  // namespace dapple::soft
