// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "udapl/common/table_mark.hpp"
#include "udapl/registry/common/dat.hpp"
#include "udapl/registry/configuration/automatic_entries.hpp"

namespace dapple::registry {

inline constexpr ApiMajors kServedMajors{2};

/// Further places of dat.conf, after those that both versions search.
inline std::vector<std::string> further_conf_paths() {
  return {};
}
inline const AutomaticStyle& automatic_style() {
  return kAutomatic20;
}

using ProviderArgument = const DAT_PROVIDER*;

/// True if programs know an IA by a number.
inline constexpr bool kNumbersIas = true;

/// True if a table belongs to the other version, where the slots have other meanings. The tables of other vendors'
/// providers do not show their version.
inline bool is_of_other_version(const DAT_PROVIDER* provider) {
  return reinterpret_cast<std::uintptr_t>(provider->extension) == udapl::common::kTableMark12;
}

/// The name that a program opens, in the form that its provider takes.
struct RequestedIa {
  char* name;
};
inline RequestedIa to_request(const DAT_NAME_PTR name) {
  return {name};
}

inline DAT_RETURN call_open(const DAT_PROVIDER& provider, const RequestedIa& wanted, DAT_COUNT qlen,
                            DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  return provider.ia_open_func(wanted.name, qlen, async_evd, ia);
}

/// dat_extension_op() is refused until an IA with extensions is known: the tables of providers without them are one
/// slot shorter.
void learn_extensions(DAT_IA_HANDLE provider_ia);

}  // namespace dapple::registry
