// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The changes of a queue pair's attributes that the specification allows.
#pragma once

#include <cstdint>

#include "roce/core/queue_pair.hpp"

namespace dapple::roce {

// The attributes of a transition, without the state.
struct TransitionMasks {
  bool exists = false;
  uint32_t required = 0;
  uint32_t optional = 0;
};
// IBTA 11.2.5.2, tables 91 to 94.
TransitionMasks transition_masks(QpType type, QpState from, QpState to);
// Tells whether the transition exists and has all required attributes and no others.
bool transition_allowed(QpType type, QpState from, QpState to, uint32_t mask);

// Tells whether the values of the attributes in `mask` are possible.
bool values_possible(const QpAttributes& attributes, uint32_t mask);

// `attributes` with the attributes in `mask` taken from `changes`.
void apply(QpAttributes& attributes, const QpAttributes& changes, uint32_t mask);

}  // namespace dapple::roce
