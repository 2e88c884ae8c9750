// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A folder of the user's choice with the contents of /sys/class/infiniband, for containers and static programs.
#pragma once

#include <vector>

#include "provider/face/model.hpp"
#include "provider/face/writer.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled {

// Confined to dappled's thread.
class Export {
 public:
  explicit Export(soft::OwnedFd folder) : folder_(std::move(folder)), writer_(folder_.get()) {}
  // Leaves an empty folder, if it was taken over.
  ~Export();
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  // Removes what an Export of a dead process has left. ENOTEMPTY: the folder has other contents; ENOTDIR; another
  // errno.
  int take_over();
  // After take_over(): everything, counters too. 0 or an errno.
  int bring_up_to_date(const std::vector<face::ShownDevice>& devices);

 private:
  soft::OwnedFd folder_;
  face::Writer writer_;
  bool owned_ = false;
};

}  // namespace dapple::dappled
