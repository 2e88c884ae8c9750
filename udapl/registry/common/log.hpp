// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <string_view>

namespace dapple::registry {

/// The subject of a message: the bits of DAT_DBG_TYPE. By default only errors are shown.
enum class LogType : unsigned {
  kError = 0x01,
  kGeneric = 0x02,
  kStaticRegistry = 0x04,
  kDynamicRegistry = 0x08,
  kProviderApi = 0x10,
  kConsumerApi = 0x20,
};

/// True if a message of this type is shown. The first call reads the environment. Any thread.
bool log_wants(LogType type) noexcept;

/// Writes one line to the destinations in DAT_DBG_DEST: bit 1 stderr (the default), bit 2 syslog. Any thread; lines do
/// not mix.
void log(LogType type, std::string_view line) noexcept;

/// Makes text from a file or an argument fit for a line of a log: in quotes, with control characters escaped, cut to a
/// readable length.
std::string quoted(std::string_view text);

}  // namespace dapple::registry
