// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <initializer_list>
#include <string_view>

namespace dapple::source_lines {

// A compiler copies functions of the system's headers, such as libibverbs', into their callers.
inline bool is_of_system(std::string_view source) {
  for (const std::string_view folder : {"/usr/include/", "/usr/local/include/", "/usr/lib/"}) {
    if (source.starts_with(folder)) return true;
  }
  for (const std::string_view folder : {"/infiniband/", "/rdma/"}) {
    const size_t at = source.rfind(folder);
    if (at != source.npos && source.ends_with(".h") && source.find('/', at + folder.size()) == source.npos &&
        source.substr(0, at).ends_with("/include"))
      return true;
  }
  return false;
}

}  // namespace dapple::source_lines
