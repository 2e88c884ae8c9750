// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/trust.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "provider/common/settings.hpp"

namespace dapple::soft {

bool trusted_uid(uid_t uid) {
  if (uid == geteuid()) return true;
  const char* text = provider::settings().trust_uid;
  while (text != nullptr && *text >= '0' && *text <= '9') {
    char* end;
    const unsigned long long number = strtoull(text, &end, 10);
    if (number == uid && (*end == ',' || *end == '\0')) return true;
    if (*end != ',') return false;
    text = end + 1;
  }
  return false;
}

}  // namespace dapple::soft
