// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program with traffic to a peer: Sends, Writes and Reads both ways, until it is told to stop or its connection
// breaks.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::tests {

// In memory that a member shares with the test.
struct MemberNews {
  std::atomic<uint64_t> completions{0};  // successful ones
  std::atomic<uint32_t> retries_exceeded{0};
  std::atomic<uint32_t> flushed{0};
  char problem[160] = "";
};

// The end of a member. kBroken: an error that verbs documents for a peer that has vanished.
enum MemberEnd : int { kStopped = 0, kBroken = 10, kPeerGone = 11, kFailed = 12 };

// kMixed: more Sends than others. kPlaced: long Writes and Reads that the sender copies itself, and a few Sends.
enum class Traffic { kMixed, kPlaced };

// `peer`: a socket to the peer's process, over which they exchange the queue pairs' numbers.
MemberEnd live(int peer, Traffic traffic, MemberNews& news, const std::atomic<bool>& stop);

}  // namespace dapple::tests
