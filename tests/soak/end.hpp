// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ways in which a connection ends. All but kWrong are documented; everything but kWhole needs an excuse.
#pragma once

#include <cstddef>

namespace dapple::soak {

enum class End {
  kWhole,         // everything was exchanged, and both sides said goodbye
  kFlushed,       // a request was flushed
  kRetries,       // a request failed because the peer no longer answers
  kDisconnected,  // the connection's event: the peer has disconnected
  kBroken,        // the connection's event: broken, or lost
  kRejected,      // nobody listens, or the peer does not want the connection
  kUnreachable,   // the peer does not answer the request for a connection
  kPeerGone,      // a plain socket shows that the peer has gone (verbs)
  kRefused,       // a call failed because of the connection's or the peer's state
  kNoMemory,      // a call reported a lack of memory
  kStopped,       // the test ends
  kWrong,         // an error that is not documented, wrong bytes, or a hang
};
inline constexpr size_t kEndKinds = 12;

const char* name_of(End end);

// Thrown by everything that uses a connection. It needs no memory.
struct Ended {
  End end = End::kWrong;
  char text[200] = "";
};

[[noreturn, gnu::format(printf, 2, 3)]] void end_with(End end, const char* format, ...);
[[noreturn, gnu::format(printf, 1, 2)]] void wrong(const char* format, ...);
// For a call that failed with this errno: a lack of memory, or `otherwise`.
[[noreturn]] void call_failed(const char* call, int error, End otherwise = End::kWrong);

}  // namespace dapple::soak
