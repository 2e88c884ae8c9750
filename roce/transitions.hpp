// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The changes of a queue pair's attributes that the specification allows.
#ifndef DAPPLE_ROCE_TRANSITIONS_HPP
#define DAPPLE_ROCE_TRANSITIONS_HPP

#include <cstdint>

#include "roce/queue_pair.hpp"

namespace dapple::roce {

// IBTA 11.2.5.2, tables 91 to 94: is the transition there, with all attributes that it requires and none that it does
// not know?
bool transition_allowed(QpType type, QpState from, QpState to, uint32_t mask);

// Are the values of the attributes in `mask` possible?
bool values_possible(const QpAttributes& attributes, uint32_t mask);

// `attributes` with what `mask` names taken from `changes`.
void apply(QpAttributes& attributes, const QpAttributes& changes, uint32_t mask);

}  // namespace dapple::roce

#endif  // DAPPLE_ROCE_TRANSITIONS_HPP
