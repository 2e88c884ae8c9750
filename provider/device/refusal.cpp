// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/refusal.hpp"

#include <stdarg.h>
#include <stdio.h>

namespace dapple::provider {
namespace {

constinit thread_local Refusal kept;

}  // namespace

int refuse(int error, const char* reason, ...) noexcept {
  va_list values;
  va_start(values, reason);
  vsnprintf(kept.text, sizeof kept.text, reason, values);
  va_end(values);
  kept.error = error;
  return error;
}

Refusal take_refusal() noexcept {
  const Refusal taken = kept;
  kept.error = 0;
  return taken;
}

}  // namespace dapple::provider
