// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/hang_reporter.hpp"

#include <pthread.h>

#include "provider/common/settings.hpp"
#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/hang/notes/notes.hpp"

namespace dapple::soft::hang {
namespace {

constinit check::Reporter* own = nullptr;

// No fork happens while another thread holds a lock, so that the child can use them.
void before_fork() {
  Notes::get()->before_fork();
  if (own != nullptr) own->mutex().lock();
}

void after_fork_in_parent() {
  if (own != nullptr) own->mutex().unlock();
  Notes::get()->after_fork(false);
}

void after_fork_in_child() {
  if (own != nullptr) own->mutex().unlock();
  Notes::get()->after_fork(true);
}

}  // namespace

check::Reporter& hang_reporter() {
  static check::Reporter& reporter = []() -> check::Reporter& {
    check::Reporter* found = explain::process_reporter();
    if (found == nullptr) {
      check::prepare_symbols();
      const char* records = provider::settings().hang_records;
      // Threads that outlive main() use it.
      found = own = new check::Reporter(records == nullptr ? "" : records);
    }
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return *found;
  }();
  return reporter;
}

}  // namespace dapple::soft::hang
