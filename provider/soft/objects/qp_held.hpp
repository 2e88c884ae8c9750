// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// A queue pair's part of HeldAcknowledgements, guarded by the queue pair's lock.
struct QpHeld {
  bool listed = false;                // its acknowledgement is held
  bool answered = false;              // the application posted soon after the messages of the last pass that had some
  uint8_t answers_in_a_row = 0;       // to a limit
  uint32_t acknowledgement_pass = 0;  // when the last acknowledgement was due, by HeldAcknowledgements::passes()
};

}  // namespace dapple::soft
