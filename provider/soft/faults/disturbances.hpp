// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The faults of DAPPLE_FAULTS that come by chance, or at no planned call: for dapple-run, which names those that have
// not come true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dapple::soft {

enum class Disturbance : uint8_t {
  kArmed,  // a completion has come while ibv_req_notify_cq() waited for one
  kDrop,
  kDuplicate,
  kReorder,
  kCorrupt,
  kDelay,
  kOrder,  // bytes have been stored in another order, or a packet has waited
  kCount,
};

// The disturbance that a word such as "drop=0.01" asks for; kCount if it asks for none, as "drop=0" does.
Disturbance disturbance_of(std::string_view word);

// Notes in dapple-run's file, if there is one, that it has come true. Any thread.
void note_disturbance(Disturbance disturbance);

struct FaultNotes;
// dapple-run's file; null without one.
FaultNotes* fault_notes();

}  // namespace dapple::soft
