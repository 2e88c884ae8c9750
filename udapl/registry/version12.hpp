// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "udapl/common/table_mark.hpp"
#include "udapl/registry/common/dat.hpp"
#include "udapl/registry/configuration/automatic_entries.hpp"
#include "udapl/registry/configuration/conf_file.hpp"

namespace dapple::registry {

inline constexpr ApiMajors kServedMajors{1, 1};

inline std::vector<std::string> further_conf_paths() {
  return {kFurtherPath12};
}
inline const AutomaticStyle& automatic_style() {
  return kAutomatic12;
}

using ProviderArgument = DAT_PROVIDER*;

inline constexpr bool kNumbersIas = false;

/// True if a provider that is not ours has registered the table.
bool is_registered(const DAT_PROVIDER* provider);

inline bool is_of_other_version(const DAT_PROVIDER* provider) {
  if (reinterpret_cast<std::uintptr_t>(provider->extension) == udapl::common::kTableMark12) [[likely]]
    return false;
  return !is_registered(provider);
}

struct RequestedIa {
  char* name;  ///< without the prefix
  DAT_BOOLEAN ro_aware;
};
inline RequestedIa to_request(const DAT_NAME_PTR name) {
  constexpr char kPrefix[] = "RO_AWARE_";
  constexpr std::size_t kLength = sizeof kPrefix - 1;
  return std::strncmp(name, kPrefix, kLength) == 0 ? RequestedIa{name + kLength, DAT_TRUE}
                                                   : RequestedIa{name, DAT_FALSE};
}

inline DAT_RETURN call_open(const DAT_PROVIDER& provider, const RequestedIa& wanted, DAT_COUNT qlen,
                            DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  return provider.ia_open_func(wanted.name, qlen, async_evd, ia, wanted.ro_aware);
}

inline void learn_extensions(DAT_IA_HANDLE) {}

}  // namespace dapple::registry
