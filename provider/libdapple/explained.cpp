// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/explained.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "provider/libdapple/last_refusal.hpp"

namespace dapple::provider {

void report_refused(const char* function, int error) noexcept {
  const Refusal refusal = take_refusal();
  if (refusal.error != error) return;
  const char* name = error == EINVAL ? "EINVAL" : error == EFAULT ? "EFAULT" : error == EBUSY ? "EBUSY" : nullptr;
  if (name == nullptr) return;
  const char* remedy = strchr(refusal.text, '\n');
  const auto length = static_cast<int>(remedy == nullptr ? strlen(refusal.text) : remedy - refusal.text);
  char text[400];
  snprintf(text, sizeof text, "%s() fails with %s: %.*s", function, name, length, refusal.text);
  report_failure(text, remedy == nullptr ? "See its manual page." : remedy + 1);
}

}  // namespace dapple::provider
