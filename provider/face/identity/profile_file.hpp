// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Profiles in files: those of dapple, in share/dapple/profiles, and one's own.
#pragma once

#include <limits.h>

#include <memory>
#include <string_view>

#include "provider/face/identity/identity.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::face {

// Reads DAPPLE_AS as read_identity() does, with the profiles in files. For code with run-time type information, which
// the class below lacks.
bool read_identity_from_files(std::string_view spec, Identity& identity, soft::Problem& problem);

// Confined to one thread.
class ProfileFiles final : public ProfileSource {
 public:
  static constexpr int kOpenPaths = -1;
  static constexpr int kNoPaths = -2;
  // `file`: the file that DAPPLE_AS names by its path, opened by another process; it stays the caller's, and lives as
  // long. Or kOpenPaths, to open it here, or kNoPaths, to refuse paths.
  explicit ProfileFiles(int file = kOpenPaths) : file_(file) {}

  bool read(std::string_view name, std::string_view& text, soft::Problem& problem) override;

  // The end of the files' names.
  static constexpr std::string_view kEnding = ".profile";

 private:
  bool read_file(int file, std::string_view name, std::string_view& text, soft::Problem& problem);

  int file_;
  std::unique_ptr<char[]> room_;
};

// The folder of dapple's profiles, seen from the folder of the running program; it exists. False if there is none.
bool find_profiles(char (&folder)[PATH_MAX]);

// The name that begins DAPPLE_AS is one's own file, not one of dapple's.
inline bool is_path(std::string_view name) {
  return name.find('/') != name.npos;
}

}  // namespace dapple::face
