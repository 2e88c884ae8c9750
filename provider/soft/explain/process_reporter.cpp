// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/process_reporter.hpp"

#include <pthread.h>
#include <stdlib.h>

#include "provider/common/settings.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/explain/failures.hpp"
#include "provider/soft/explain/holders.hpp"
#include "provider/soft/refusals/refusal.hpp"

namespace dapple::soft::explain {
namespace {

check::Reporter* made() {
  if (check::Checker* checker = check::Checker::get(); checker != nullptr) return &checker->reporter;
  if (!provider::is_on(provider::settings().explain)) return nullptr;
  check::prepare_symbols();
  const char* records = provider::settings().check_records;
  // Threads that outlive main() use it.
  return new check::Reporter(records == nullptr ? "" : records, check::Reporter::Shows::kAll);
}

// No fork happens while another thread holds a lock, so that the child can use them. The check locks its reporter
// itself; its function runs behind this one.
void before_fork() {
  Holders::get().mutex().lock();
  Failures::get().mutex().lock();
  if (check::Checker::get() == nullptr) process_reporter()->mutex().lock();
}

void after_fork() {
  if (check::Checker::get() == nullptr) process_reporter()->mutex().unlock();
  Failures::get().mutex().unlock();
  Holders::get().mutex().unlock();
}

}  // namespace

check::Reporter* process_reporter() {
  static check::Reporter* const reporter = [] {
    check::Reporter* own = made();
    if (own == nullptr) return own;
    explain_refusals();
    pthread_atfork(before_fork, after_fork, after_fork);
    if (check::Checker::get() == nullptr) atexit([] { process_reporter()->await_reports(); });
    return own;
  }();
  return reporter;
}

}  // namespace dapple::soft::explain
