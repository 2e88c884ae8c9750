// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open file whose server (FUSE) answers nothing any more.
#pragma once

#include <sys/types.h>

namespace dapple::tests {

class HungFile {
 public:
  // Mounts the file's system in a mount namespace of this process' own. fd() is -1 if the system forbids this.
  HungFile();
  // Calls that wait for the server return with an error.
  ~HungFile();
  HungFile(const HungFile&) = delete;
  HungFile& operator=(const HungFile&) = delete;

  int fd() const { return fd_; }

 private:
  char folder_[32] = "/tmp/dapple-hung-XXXXXX";
  bool is_mounted_ = false;
  pid_t server_ = -1;
  int fd_ = -1;
};

}  // namespace dapple::tests
