// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "udapl/registry/configuration/conf_parser.hpp"
#include "udapl/registry/configuration/rdma_ports.hpp"

namespace dapple::registry {

/// An entry without a line: dat.conf is needed only for exceptions.
struct AutomaticEntry {
  ConfEntry entry;  ///< line is 0
  bool is_listed = false;
};

/// The common parts of all entries of one version of the API.
struct AutomaticStyle {
  Version api;
  const char* library;
  const char* provider_id;
  Version provider;
  /// A further name of the first usable port, or of the first port if none is usable; NULL if there is no such name.
  /// Not listed.
  const char* first_port;
};

inline constexpr AutomaticStyle kAutomatic20{{2, 0}, "libdaplofa.so.2", "dapl.2.0", {2, 0}, nullptr};
/// OpenIB-cma is the name of the one entry in OFED's dat.conf.
inline constexpr AutomaticStyle kAutomatic12{{1, 2}, "libdaplcma.so.1", "dapl.1.2", {1, 2}, "OpenIB-cma"};

/// True if the ia_params of a line name the port, in any form but a host name, which would take DNS.
bool names_port(const ConfEntry& line, const RdmaPort& port);

/// The entries of `ports`, in their order, for consumers of either thread safety. A port has the names ofa-v2-<netdev>
/// and ofa-v2-<device>-<number>, and the latter also with the suffixes s and u of libdaploscm and libdaploucm. The
/// registry lists only the first name, once for a network device and for consumers that are not thread-safe, if the
/// port is active and has an address, and no line of `lines` names it.
std::vector<AutomaticEntry> automatic_entries(const std::vector<RdmaPort>& ports, const std::vector<ConfEntry>& lines,
                                              const AutomaticStyle& style = kAutomatic20);

/// True if the ia_params of a line have the customary form, a word and a number, and name none of the `ports` that are
/// active and have an address. False for a line in another form, for another vendor's provider, which cannot be judged.
/// A host name is not looked up: true.
bool names_no_usable_port(const ConfEntry& line, const std::vector<RdmaPort>& ports);

}  // namespace dapple::registry
