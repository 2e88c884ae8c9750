// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::provider {

// How the reason begins if a call comes too late for its connection, which a right program cannot always know.
#define DAPPLE_CONNECTION_MAY_BE_OVER                                                                      \
  "the connection is not in the state for this call: the peer may have ended it, or this id has answered " \
  "already."
inline constexpr char kConnectionMayBeOver[] = DAPPLE_CONNECTION_MAY_BE_OVER;

}  // namespace dapple::provider
