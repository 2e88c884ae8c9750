// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A folder of this process' own, in a place for files that need not last. The process holds a lock on it while it
// lives; a folder without the lock was left by a dead process, and the next one removes it.
#pragma once

#include <string>

#include "provider/system/owned_fd.hpp"

namespace dapple::dappled {

// The folders that may hold such a folder: their names, the best first, and the number of names.
struct ParentFolders {
  static constexpr int kMax = 4;
  std::string names[kMax];
  int count = 0;

  // $XDG_RUNTIME_DIR; then those in memory before those on a disk: /run/dapple for root, /dev/shm, /tmp.
  static ParentFolders of_this_process();
};

class PrivateFolder {
 public:
  PrivateFolder() = default;
  PrivateFolder(PrivateFolder&&) noexcept = default;
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  ~PrivateFolder() { remove(); }

  // Makes a new, empty folder in this place, and removes what dead processes have left there. 0 or an errno.
  int make(const std::string& place);
  // Removes the folder and all that is in it.
  void remove();

  explicit operator bool() const { return static_cast<bool>(folder_); }
  int fd() const { return folder_.get(); }
  const std::string& path() const { return path_; }
  // Another descriptor of the folder, without the lock, for other processes. Empty on failure.
  soft::OwnedFd reopen() const;

 private:
  soft::OwnedFd place_;
  soft::OwnedFd folder_;  // with the lock
  std::string name_;
  std::string path_;
};

}  // namespace dapple::dappled
