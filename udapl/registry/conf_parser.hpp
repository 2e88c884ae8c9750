// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace dapple::dat {

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
  std::string provider_id;  ///< vendor and version of the provider: information only
  Version provider;
  std::string ia_params;        ///< for dat_provider_init()
  std::string platform_params;  ///< no meaning in user space
  unsigned line = 0;            ///< in its file, from 1
};

/// The versions of the API that a registry serves, both ends included. Lines of others belong to other registries.
struct ApiMajors {
  std::uint32_t first = 0;
  std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
};

using ReportBadLine = std::function<void(unsigned line, const std::string& what)>;

/// Parses the text of a dat.conf. Gives the user-level (u) lines of the wanted versions, nondefault ones included, in
/// file order; a malformed line is reported and left out. Lines for the kernel (k) or of other versions are passed over
/// silently, as far as their second field can be read. Lines end in LF or CRLF. Never fails; throws bad_alloc only.
std::vector<ConfEntry> parse_dat_conf(std::string_view text, ApiMajors wanted, const ReportBadLine& report);

}  // namespace dapple::dat
