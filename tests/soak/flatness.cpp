// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/flatness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dapple::soak {

void Flatness::restart(uint64_t time_ms) {
  begin_ms_ = time_ms;
  warm_ = has_reference_ = has_sample_ = false;
}

std::string Flatness::add(uint64_t time_ms, Size size) {
  std::string reason;
  if (time_ms >= begin_ms_ + window_ms_) {
    if (warm_ && has_sample_) {
      if (has_reference_) {
        reason = judge();
        windows_++;
      } else {
        reference_ = lowest_;
        has_reference_ = true;
      }
    }
    warm_ = true;
    has_sample_ = false;
    begin_ms_ = time_ms;
  }
  lowest_.kib = has_sample_ ? std::min(lowest_.kib, size.kib) : size.kib;
  lowest_.descriptors = has_sample_ ? std::min(lowest_.descriptors, size.descriptors) : size.descriptors;
  has_sample_ = true;
  return reason;
}

std::string Flatness::judge() const {
  const bool larger = lowest_.kib > reference_.kib + reference_.kib / 8 + slack_.kib;
  const bool more = lowest_.descriptors > reference_.descriptors + slack_.descriptors;
  if (!larger && !more) return {};
  return fmt::format("it has {} KiB and {} descriptors; {} KiB and {} after the warm-up", lowest_.kib,
                     lowest_.descriptors, reference_.kib, reference_.descriptors);
}

}  // namespace dapple::soak
