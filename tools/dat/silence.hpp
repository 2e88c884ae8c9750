// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::tools {

// While an object of this class lives, it hides messages on standard error: registries, providers and drivers complain
// about names that are only tried. For programs with one thread.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int before_;
};

}  // namespace dapple::tools
