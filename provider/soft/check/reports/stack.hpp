// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

#include "provider/common/stack.hpp"

namespace dapple::soft::check {

using provider::Place;
using provider::Stack;

// Bytes that differ for two stacks from different lines.
std::string bytes_of(const Stack& stack);

// The stack of a verb's caller, with the lines of its script. The caller holds no lock.
Stack here();

}  // namespace dapple::soft::check
