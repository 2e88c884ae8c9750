// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages of the provider: a line each, "dapple: ...", to standard error or where the sum DAPL_DBG_DEST says (1
// standard error, 2 syslog). DAPL_DBG_TYPE says which, in the bits of the original provider, errors alone by default.
// Nothing of this is on the data path. Any thread.
#pragma once

namespace dapple::dat {

// Bits of DAPL_DBG_TYPE.
constexpr unsigned kLogErrors = 0x1;
// Warnings, connections, warnings and errors of the connection manager.
constexpr unsigned kLogConnections = 0x2 | 0x8 | 0x10000 | 0x80000;

// Tells whether a message of one of these types would be shown.
bool log_wants(unsigned types);
[[gnu::format(printf, 2, 3)]] void log(unsigned types, const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);

}  // namespace dapple::dat
