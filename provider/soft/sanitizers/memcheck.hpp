// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// valgrind's memcheck. It sees the plug-in's own accesses, but does not know for whom they are made.
class Memcheck final : public Sanitizer {
 public:
  // Null if the program does not run under memcheck, or on an architecture for which memcheck.cpp lacks the request.
  static Sanitizer* of_program();

  void before(const DeviceAccess& access, const void* memory, size_t size) override;
  void stored(const void* memory, size_t size) override;
};

}  // namespace dapple::soft
