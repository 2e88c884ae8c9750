// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include "provider/soft/raw/flow_table.hpp"

namespace dapple::soft {

// Reads a program's flow, with the specifications behind `attr`, which may be at any address. 0, or the errno of a
// refusal.
int read_flow(const ibv_flow_attr& attr, FlowRule& rule);

}  // namespace dapple::soft
