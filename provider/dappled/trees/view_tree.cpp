// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/trees/view_tree.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <new>

#include "provider/dappled/trees/surroundings.hpp"
#include "provider/protocol/tree_messages.hpp"

namespace dapple::dappled {

bool ViewTree::is_taken_away() const {
  struct stat status;
  return fstat(folder_.fd(), &status) != 0 || status.st_nlink == 0;
}

void ViewTree::remove() {
  writer_.reset();
  folder_.remove();
}

bool ViewTree::make(face::Tree& tree, soft::Problem& problem) {
  const ParentFolders places = ParentFolders::of_this_process();
  std::string reasons;
  int last = ENOENT;
  for (int i = 0; i < places.count; i++) {
    const std::string& place = places.names[i];
    last = place.size() < soft::kTreePathSize / 2 ? folder_.make(place) : ENAMETOOLONG;
    if (last == 0) {
      writer_.reset(new (std::nothrow) face::Writer(folder_.fd()));
      last = writer_ != nullptr ? writer_->apply(tree) : ENOMEM;
      if (last == 0) return true;
      remove();
    }
    reasons += (i > 0 ? ", " : "") + place + ": " + strerror(last);
  }
  problem.set(last, "dappled finds no place for the files of its devices (%s)", reasons.c_str());
  return false;
}

bool ViewTree::bring_up_to_date(const std::vector<face::ShownDevice>& devices, soft::Problem& problem) {
  face::Tree tree = face::tree_of(devices, kernel_entries());
  if (exists() && is_taken_away()) remove();
  if (!exists()) return make(tree, problem);
  const int error = writer_->apply(tree);
  if (error == 0) return true;
  if (!writer_->is_broken()) {
    problem.set(error, "dappled cannot write %s: %s", folder_.path().c_str(), strerror(error));
    return false;
  }
  remove();
  return make(tree, problem);
}

int ViewTree::write_counters(const std::vector<face::ShownDevice>& devices) {
  assert(exists());
  if (is_taken_away()) return ESTALE;
  face::Tree counters;
  for (const face::ShownDevice& device : devices) face::add_live_files(counters, device);
  return writer_->update(counters);
}

bool ViewTree::is_unreadable(const char* path) const {
  assert(exists());
  const face::Node* entry = face::find_through_links(writer_->present(), path);
  return entry != nullptr && entry->kind == face::NodeKind::kEmpty;
}

}  // namespace dapple::dappled
