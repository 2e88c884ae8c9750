// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP
#define DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP

#include "provider/common/stack.hpp"

namespace dapple::soft::check {

using provider::Place;
using provider::Stack;

}  // namespace dapple::soft::check

#endif  // DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP
