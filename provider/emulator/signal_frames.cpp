// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/signal_frames.hpp"

#include <unwind.h>

namespace dapple::provider {
namespace {

// The unwinder tells whether a frame's address is the next instruction of a frame that a signal has interrupted, or a
// return address.
_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* found) {
  int is_interrupted = 0;
  _Unwind_GetIPInfo(frame, &is_interrupted);
  if (is_interrupted != 0) *static_cast<bool*>(found) = true;
  return _URC_NO_REASON;
}

}  // namespace

bool in_signal_handler() {
  bool found = false;
  _Unwind_Backtrace(look_at, &found);
  return found;
}

}  // namespace dapple::provider
