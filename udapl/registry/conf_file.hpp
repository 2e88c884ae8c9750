// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <vector>

#include "udapl/registry/conf_parser.hpp"

namespace dapple::dat {

/// Where a dat.conf may be.
struct ConfSearch {
  /// Set: this file and no other.
  const char* override_path = nullptr;
  /// Else the first of these that can be read.
  std::vector<std::string> paths;
};

/// DAT_OVERRIDE, unless the program is setuid or setgid: it picks the libraries that are loaded. Then the file below
/// the build's sysconfdir, then /etc/dat.conf, then the further ones.
ConfSearch default_search(const std::vector<std::string>& further = {});

/// A further place where the registry of DAT 1.2 looks, as Solaris' does.
inline constexpr const char* kFurtherPath12 = "/etc/dat/dat.conf";

struct Configuration {
  /// Empty if no file was found: none is needed, because ports have automatic entries.
  std::string path;
  std::vector<ConfEntry> entries;
};

/// Finds, reads and parses the configuration. Whatever is wrong with one that is there is
/// logged as an error with file and line. Blocks on the
/// file; throws bad_alloc only.
Configuration load_configuration(const ConfSearch& search, ApiMajors wanted);

}  // namespace dapple::dat
