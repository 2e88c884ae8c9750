// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/last_refusal.hpp"

#include <string.h>

#include <cstdlib>

#include "provider/common/thread_object.hpp"

namespace dapple::soft::explain {
namespace {

struct Last {
  char* line = nullptr;
  unsigned count = 0;

  Last() = default;
  ~Last() { free(line); }
  Last(const Last&) = delete;
  Last& operator=(const Last&) = delete;
};

}  // namespace

void remember_refusal(const std::string& line) {
  Last* const last = ThreadObject<Last>::get();
  if (last == nullptr) return;
  free(last->line);
  last->line = strdup(line.c_str());
  last->count++;
}

const char* last_refusal(unsigned& count) {
  const Last* const last = ThreadObject<Last>::made();
  count = last == nullptr ? 0 : last->count;
  return last == nullptr ? nullptr : last->line;
}

}  // namespace dapple::soft::explain
