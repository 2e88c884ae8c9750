// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/trees/export.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cassert>
#include <string>

namespace dapple::dappled {
namespace {

// The kernel refuses to read it, with EINVAL, and every process may open its own.
constexpr char kUnreadable[] = "/proc/self/ns/net";

// Tells whether the entry is a device's folder of class_tree_of(), or the writer's own.
bool is_ours(int folder, const dirent& entry) {
  const std::string name = entry.d_name;
  struct stat status;
  return name == "." || name == ".." || name == face::kStage ||
         fstatat(folder, (name + '/' + face::kMark).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Export::~Export() {
  if (owned_) writer_.clear();
}

int Export::take_over() {
  const int again = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = again < 0 ? nullptr : fdopendir(again);
  if (stream == nullptr) return errno;
  int error = 0;
  while (const dirent* entry = readdir(stream)) {
    if (!is_ours(folder_.get(), *entry)) error = ENOTEMPTY;
  }
  closedir(stream);
  owned_ = error == 0;
  return owned_ ? writer_.clear() : error;
}

int Export::bring_up_to_date(const std::vector<face::ShownDevice>& devices) {
  assert(owned_);
  face::Tree tree = face::class_tree_of(devices, kUnreadable);
  if (writer_.is_broken()) {
    if (const int error = writer_.clear(); error != 0) return error;
  }
  return writer_.apply(tree);
}

}  // namespace dapple::dappled
