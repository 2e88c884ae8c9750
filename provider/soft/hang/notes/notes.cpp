// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/notes/notes.hpp"

#include <time.h>

#include <cassert>

#include "provider/common/settings.hpp"
#include "provider/soft/check/checker.hpp"

namespace dapple::soft::hang {

Notes* Notes::get() {
  // Threads that outlive main() use it.
  static Notes* const notes = [] {
    const bool wanted = provider::settings().hang != nullptr || check::Checker::get() != nullptr;
    return wanted ? new Notes : nullptr;
  }();
  return notes;
}

Notes::Tables Notes::hold() {
  const std::lock_guard lock(mutex_);
  readers_++;
  return tables_;
}

void Notes::let_go() {
  const std::lock_guard lock(mutex_);
  assert(readers_ > 0);
  readers_--;
}

void Notes::wait_a_little() {
  constexpr timespec kWait = {0, 1'000'000};
  nanosleep(&kWait, nullptr);
}

}  // namespace dapple::soft::hang
