// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider's messages, each one line "dapple: ...". DAPL_DBG_DEST, a sum, selects the destination (1 standard
// error, 2 syslog); standard error is the default. DAPL_DBG_TYPE selects the messages, in the bits of the original
// provider; by default only errors are shown. The data path logs nothing. Any thread may log.
#pragma once

namespace dapple::udapl {

// Bits of DAPL_DBG_TYPE.
constexpr unsigned kLogErrors = 0x1;
// Warnings, connections, warnings and errors of the connection manager.
constexpr unsigned kLogConnections = 0x2 | 0x8 | 0x10000 | 0x80000;

// True if a message of one of these types would be shown.
bool log_wants(unsigned types);
[[gnu::format(printf, 2, 3)]] void log(unsigned types, const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);

}  // namespace dapple::udapl
