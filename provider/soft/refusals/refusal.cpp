// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/refusals/refusal.hpp"

#include <errno.h>

#include <atomic>
#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "provider/common/thread_object.hpp"

namespace dapple::soft {
namespace {

std::atomic<bool> explains{false};
[[gnu::tls_model("initial-exec")]] thread_local constinit Refusal kept;

// The thread's text.
struct Room {
  char bytes[Refusal::kSize];

  Room() = default;
  ~Room() { kept = {}; }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
};

}  // namespace

void explain_refusals() {
  explains.store(true, std::memory_order_relaxed);
}

bool explains_refusals() {
  return explains.load(std::memory_order_relaxed);
}

int refuse(int error, const char* format, ...) {
  assert(error > 0 && strchr(format, '\n') != nullptr);
  if (!explains_refusals()) return error;
  const int saved = errno;
  Room* const room = ThreadObject<Room>::get();
  kept = {error, false, ""};
  if (room != nullptr) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(room->bytes, Refusal::kSize, format, arguments);
    va_end(arguments);
    kept.text = room->bytes;
  }
  errno = saved;
  return error;
}

int refuse_memory(const char* objects) {
  return refuse(ENOMEM, "the process has no memory for %s.\nFree memory, ask for less, or raise ulimit -v.", objects);
}

int refuse_by_plan(int error) {
  refuse(error, "the plan of faults (DAPPLE_FAULTS) lets this call fail.\nSee whether the program copes with it.");
  kept.is_planned = explains_refusals();
  return error;
}

int refusal_error(int error) {
  assert(!explains_refusals() || kept.error == error);
  return error;
}

const Refusal& refusal() {
  return kept;
}

void forget_refusal() {
  kept.error = 0;
}

}  // namespace dapple::soft
