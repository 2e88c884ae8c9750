// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string_view>

namespace dapple::soft {

// True if the last order= of a plan is order=weak: weak_queue_pair.hpp. The plan is well-formed.
bool wants_weak_order(std::string_view plan);

// The same for DAPPLE_FAULTS of this process; false if it is malformed, because then no device can be opened.
bool has_weak_order();

}  // namespace dapple::soft
