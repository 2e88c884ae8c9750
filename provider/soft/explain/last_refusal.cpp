// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/last_refusal.hpp"

#include <string.h>

#include <cstdlib>

namespace dapple::soft::explain {
namespace {

// A plug-in has little room in the threads' static memory. A call in a destructor of the program's may come after this
// one's.
struct Last {
  char* line = nullptr;
  unsigned count = 0;
  ~Last() {
    free(line);
    line = nullptr;
  }
};
[[gnu::tls_model("initial-exec")]] thread_local Last last;

}  // namespace

void remember_refusal(const std::string& line) {
  free(last.line);
  last.line = strdup(line.c_str());
  last.count++;
}

const char* last_refusal(unsigned& count) {
  count = last.count;
  return last.line;
}

}  // namespace dapple::soft::explain
