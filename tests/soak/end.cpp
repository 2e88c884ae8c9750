// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/end.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace dapple::soak {

const char* name_of(End end) {
  static constexpr const char* kNames[kEndKinds] = {"whole",   "flushed",   "retries exceeded", "disconnected",
                                                    "broken",  "rejected",  "unreachable",      "peer gone",
                                                    "refused", "no memory", "stopped",          "WRONG"};
  return kNames[static_cast<size_t>(end)];
}

void end_with(End end, const char* format, ...) {
  Ended thrown;
  thrown.end = end;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(thrown.text, sizeof thrown.text, format, arguments);
  va_end(arguments);
  throw thrown;
}

void wrong(const char* format, ...) {
  Ended thrown;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(thrown.text, sizeof thrown.text, format, arguments);
  va_end(arguments);
  throw thrown;
}

void call_failed(const char* call, int error, End otherwise) {
  // A thread that cannot be made is EAGAIN.
  const bool memory = error == ENOMEM || error == EAGAIN;
  end_with(memory ? End::kNoMemory : otherwise, "%s: %s", call, strerror(error));
}

}  // namespace dapple::soak
