// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace dapple::registry {

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

/// One line of dat.conf.
struct ConfEntry {
  std::string ia_name;  ///< 1 to 255 bytes
  Version api;
  bool is_thread_safe = false;
  bool is_default = false;
  std::string library;      ///< never empty
  std::string provider_id;  ///< vendor and version of the provider, for information only
  Version provider;
  std::string ia_params;        ///< the argument of dat_provider_init()
  std::string platform_params;  ///< no meaning in user space
  unsigned line = 0;            ///< the line's number in its file, from 1
};

/// The versions of the API that a registry serves, both ends included. Other lines belong to other registries.
struct ApiMajors {
  std::uint32_t first = 0;
  std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
};

using ReportBadLine = std::function<void(unsigned line, const std::string& what)>;

/// Parses the text of a dat.conf. Returns the user-level (u) lines of the wanted versions, nondefault ones included, in
/// file order. A malformed line is reported and left out. Lines for the kernel (k) or of other versions are skipped
/// silently, if their second field can be read. Lines end in LF or CRLF. A
/// byte order mark of UTF-8 is skipped; one of UTF-16 makes the whole text one malformed line. Never fails; throws only
/// bad_alloc.
std::vector<ConfEntry> parse_dat_conf(std::string_view text, ApiMajors wanted, const ReportBadLine& report);

}  // namespace dapple::registry
