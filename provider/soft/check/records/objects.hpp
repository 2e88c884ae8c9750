// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects of a process, and where it made them.
#pragma once

#include <map>
#include <optional>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/reporter.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf.
class Objects {
 public:
  // `verb` is a literal, such as "made by ibv_alloc_pd".
  void add(const void* object, const char* verb);
  void add(const void* object, const ReportedStack& made);
  // Call it before the object is destroyed, because its address may be reused at once. Returns where it was made.
  std::optional<ReportedStack> remove(const void* object);
  // The place where the object was made; it stays noted.
  std::optional<ReportedStack> made(const void* object);
  void forget_all();
  // A note for each line that has made objects which are left.
  void report_all(Reporter& reporter);

  Mutex& mutex() { return mutex_; }

 private:
  Mutex mutex_{LockRank::kCheckedObjects};
  std::map<const void*, ReportedStack> objects_;
};

}  // namespace dapple::soft::check
