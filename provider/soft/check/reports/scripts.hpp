// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The lines of a Python script that call verbs, as by pyverbs. The interpreter's own frames say nothing about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "provider/common/mutex.hpp"

namespace dapple::soft::check {

struct ScriptLine {
  std::string function, file;
  int line = 0;

  bool operator<(const ScriptLine& other) const {
    return std::tie(function, file, line) < std::tie(other.function, other.file, other.line);
  }
};

// Internally locked; the lock is a leaf.
class Scripts {
 public:
  static Scripts& get();

  // The number of the calling thread's lines; 0 if it executes no script, has released the interpreter's lock, or
  // kMax are known. The caller holds no lock: the interpreter may have to free memory.
  uint32_t here();
  // The innermost first.
  std::vector<ScriptLine> lines(uint32_t number);
  // The module's first byte in memory tells whether it is the interpreter.
  bool is_interpreter(const void* module) const;

  Mutex& mutex() { return mutex_; }

 private:
  Scripts();

  static constexpr size_t kMax = 65536;

  const void* interpreter_ = nullptr;
  Mutex mutex_{LockRank::kScripts};
  std::map<std::vector<ScriptLine>, uint32_t> numbers_;
  std::vector<const std::vector<ScriptLine>*> known_;  // by their numbers, the first of which is 1
};

}  // namespace dapple::soft::check
