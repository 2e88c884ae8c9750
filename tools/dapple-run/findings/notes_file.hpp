// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

namespace dapple::run {

// The file into which the processes write their notes. It disappears with this object.
class NotesFile {
 public:
  // `variable`: the environment variable that tells its name to the processes. They also learn which file is standard
  // error here.
  explicit NotesFile(const char* variable);
  ~NotesFile();
  NotesFile(const NotesFile&) = delete;
  NotesFile& operator=(const NotesFile&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  bool is_named_ = false;
};

}  // namespace dapple::run
