// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <string_view>

namespace dapple::dat {

/// What a message is about: the bits of DAT_DBG_TYPE. Only errors are on by default.
enum class LogType : unsigned {
  kError = 0x01,
  kGeneric = 0x02,
  kStaticRegistry = 0x04,
  kDynamicRegistry = 0x08,
  kProviderApi = 0x10,
  kConsumerApi = 0x20,
};

/// Whether a message of this type goes anywhere. The environment is read at the first call. Any thread.
bool log_wants(LogType type) noexcept;

/// One line, to where the bits of DAT_DBG_DEST say: 1 stderr (the default), 2 syslog. Any thread; lines do not mix.
void log(LogType type, std::string_view line) noexcept;

/// Text from a file or an argument, made fit for a line of a log: between quotes, control characters escaped, cut to a
/// readable length.
std::string quoted(std::string_view text);

}  // namespace dapple::dat
