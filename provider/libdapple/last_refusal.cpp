// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/last_refusal.hpp"

#include <atomic>

#include "provider/common/check_calls.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/libdapple/plugin.hpp"

namespace dapple::provider {

const char* last_refusal(unsigned* count) {
  const ErrnoGuard keep;
  // Libraries ask often. The plug-in stays once it is loaded.
  static constinit std::atomic<LastRefusal> found = nullptr;
  LastRefusal function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<LastRefusal>(find_in_plugin(kLastRefusal));
    found.store(function, std::memory_order_relaxed);
  }
  unsigned failures = 0;
  const char* line = function == nullptr ? nullptr : function(failures);
  if (count != nullptr) *count = failures;
  return line;
}

bool report_failure(const char* text, const char* remedy) {
  const ErrnoGuard keep;
  const auto report = reinterpret_cast<ReportFailure>(find_in_plugin(kReportFailure));
  return report != nullptr && report(text, remedy);
}

}  // namespace dapple::provider
