// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/waits.hpp"

#include <time.h>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

constexpr timespec kLook = {0, 200'000};
constexpr int kMaxLooks = 50;

}  // namespace

void Waits::await() const {
  if (!any()) return;
  const CancelGuard whole;
  for (int i = 0; i < kMaxLooks && any(); i++) nanosleep(&kLook, nullptr);
}

}  // namespace dapple::soft
