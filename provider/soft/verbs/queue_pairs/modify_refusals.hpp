// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::verbs {

// Keeps the reason for which the engine refuses this change with EINVAL. The caller has the queue pair's lock.
void refuse_modify(const Qp& qp, const ibv_qp_attr& attr, uint32_t mask);

}  // namespace dapple::soft::verbs
