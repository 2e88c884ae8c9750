// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tells whether the size of a process stays the same. Samples vary upwards only, so it compares the lowest of each
// window with the lowest of the first window after the warm-up.
#pragma once

#include <cstdint>
#include <string>

namespace dapple::soak {

struct Size {
  long kib = 0;
  long descriptors = 0;
};

struct Slack {
  long kib = 2048;  // and an eighth of the reference
  long descriptors = 2;
};

class Flatness {
 public:
  // The warm-up and each window last this long.
  Flatness(uint64_t window_ms, Slack slack) : window_ms_(window_ms), slack_(slack) {}

  // A sample. Returns the reason if the process has grown; empty if not.
  std::string add(uint64_t time_ms, Size size);
  // A new process begins at this time.
  void restart(uint64_t time_ms);
  bool has_reference() const { return has_reference_; }
  uint32_t windows() const { return windows_; }

 private:
  std::string judge() const;

  const uint64_t window_ms_;
  const Slack slack_;
  uint64_t begin_ms_ = 0;  // of the window
  bool warm_ = false, has_reference_ = false, has_sample_ = false;
  Size lowest_, reference_;
  uint32_t windows_ = 0;  // compared with a reference
};

}  // namespace dapple::soak
