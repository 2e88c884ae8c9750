// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/common/stack.hpp"

namespace dapple::soft::check {

using provider::Place;
using provider::Stack;

}  // namespace dapple::soft::check
