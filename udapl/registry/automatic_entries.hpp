// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "udapl/registry/conf_parser.hpp"
#include "udapl/registry/rdma_ports.hpp"

namespace dapple::dat {

/// An entry that no line has: dat.conf is not needed where it would say the obvious.
struct AutomaticEntry {
  ConfEntry entry;  ///< line is 0
  bool is_listed = false;
};

/// What the entries of one version of the API have alike.
struct AutomaticStyle {
  Version api;
  const char* library;
  const char* provider_id;
  Version provider;
  /// A further name of the first port that is usable, or of the first if none is; NULL: there is none. Not listed.
  const char* first_port;
};

inline constexpr AutomaticStyle kAutomatic20{{2, 0}, "libdaplofa.so.2", "dapl.2.0", {2, 0}, nullptr};
/// OpenIB-cma is what OFED's dat.conf called the one entry it had.
inline constexpr AutomaticStyle kAutomatic12{{1, 2}, "libdaplcma.so.1", "dapl.1.2", {1, 2}, "OpenIB-cma"};

/// True if the ia_params of a line are those of the port, in any of their forms but a host name, which would take DNS.
bool names_port(const ConfEntry& line, const RdmaPort& port);

/// The entries of `ports`, in their order, for consumers of either thread safety. A port is ofa-v2-<netdev>,
/// ofa-v2-<device>-<number>, and the latter with the suffixes s and u that the names of libdaploscm and libdaploucm
/// have. The first of these is listed, once for a network device and for consumers that are not thread-safe, if the
/// port is active and has an address, and none of `lines` names it.
std::vector<AutomaticEntry> automatic_entries(const std::vector<RdmaPort>& ports, const std::vector<ConfEntry>& lines,
                                              const AutomaticStyle& style = kAutomatic20);

/// True if a line says in the customary form, a word and a number, what it is for, and that is none of `ports` that is
/// active and has an address. A line in another form, for another vendor's provider, cannot be judged: false. A host
/// name is not looked up: true.
bool names_no_usable_port(const ConfEntry& line, const std::vector<RdmaPort>& ports);

}  // namespace dapple::dat
