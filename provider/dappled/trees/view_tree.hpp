// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The tree of one view of the devices, in a private folder that is made when a program first asks for it.
#pragma once

#include <memory>
#include <vector>

#include "provider/dappled/trees/private_folder.hpp"
#include "provider/face/model.hpp"
#include "provider/face/writer.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

// Confined to dappled's thread.
class ViewTree {
 public:
  // Makes the folder, or brings it up to date. The folder is another one if somebody has taken the last away. False on
  // failure: `problem` tells which places were tried, and a folder that was there is as before.
  bool bring_up_to_date(const std::vector<face::ShownDevice>& devices, soft::Problem& problem);
  // Writes the counters of a folder that is there. 0 or an errno; ESTALE if somebody has taken it away.
  int write_counters(const std::vector<face::ShownDevice>& devices);
  // Of a folder that is there: tells whether the kernel's read() of the entry fails with EINVAL. `path` may lead
  // through links in the folder.
  bool is_unreadable(const char* path) const;

  bool exists() const { return writer_ != nullptr; }
  const PrivateFolder& folder() const { return folder_; }
  void remove();

 private:
  bool make(face::Tree& tree, soft::Problem& problem);
  bool is_taken_away() const;

  PrivateFolder folder_;
  std::unique_ptr<face::Writer> writer_;  // of the folder
};

}  // namespace dapple::dappled
