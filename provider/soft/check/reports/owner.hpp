// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>

#include "provider/soft/check/reports/report.hpp"

namespace dapple::soft::check {

// Whose request it is. A post notes it, so the words are made only for a report.
struct Owner {
  uint32_t qpn = 0;  // 0: a shared receive queue
  char device[64] = "";

  Owner() = default;
  Owner(uint32_t number, const char* name) : qpn(number) { std::string_view(name).copy(device, sizeof device - 1); }

  // "queue pair 0x11 of dapple0"
  std::string name() const {
    return qpn == 0 ? format("a shared receive queue of %s", device) : format("queue pair 0x%x of %s", qpn, device);
  }
};

}  // namespace dapple::soft::check
