// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A counter of a software device, from dappled's status.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/protocol/counters.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::tests {

// By its key in kCounterNames. Aborts if there is no such key.
inline uint64_t counter(const soft::StatusReply& status, const char* key) {
  for (size_t i = 0; i < soft::kCounterCount; i++) {
    if (strcmp(soft::kCounterNames[i].key, key) == 0) return status.counters[i];
  }
  fprintf(stderr, "there is no counter %s\n", key);
  abort();
}

}  // namespace dapple::tests
