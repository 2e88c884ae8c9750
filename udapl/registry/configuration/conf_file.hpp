// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <vector>

#include "udapl/registry/configuration/conf_parser.hpp"

namespace dapple::registry {

/// The places of dat.conf.
struct ConfSearch {
  /// If set: this file and no other.
  const char* override_path = nullptr;
  /// Otherwise the first of these that can be read.
  std::vector<std::string> paths;
};

/// DAT_OVERRIDE, unless the program is setuid or setgid, because it selects the libraries to load. Then the file below
/// the build's sysconfdir, then /etc/dat.conf, then the further ones.
ConfSearch default_search(const std::vector<std::string>& further = {});

/// A further place where the registry of DAT 1.2 looks, as Solaris' registry does.
inline constexpr const char* kFurtherPath12 = "/etc/dat/dat.conf";

struct Configuration {
  /// Empty if no file was found. None is needed, because ports have automatic entries.
  std::string path;
  std::vector<ConfEntry> entries;
};

/// Finds, reads and parses the configuration. Logs each error in an existing file with file and line. Blocks on the
/// file. Throws only bad_alloc.
Configuration load_configuration(const ConfSearch& search, ApiMajors wanted);

}  // namespace dapple::registry
