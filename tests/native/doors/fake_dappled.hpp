// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The page that fake-dappled shares with the test that has it started: its counts, and the test's orders. The file's
// path is in FAKE_DAPPLED_STATE.
#pragma once

#include <atomic>

#include "provider/protocol/cm_messages.hpp"

namespace dapple::tests {

// Each byte of an answer that comes along with an event.
inline constexpr uint8_t kAheadByte = 0xA7;

struct FakeState {
  // The counts of all fake-dappleds together.
  std::atomic<int> process, starts, connections, opens, restores, hangups, commands;
  // The last command.
  soft::CmChannelName channel, source;
  std::atomic<uint32_t> length;
  uint8_t command[soft::kCmCommandSize];

  // Orders, each carried out once.
  std::atomic<int> post_to;         // 1 + the channel that gets an event
  std::atomic<int> fail;            // the errno of the next command
  std::atomic<int> forget_event;    // the next GET_EVENT finds none
  std::atomic<int> ahead;           // the next GET_EVENT's answer brings one to QUERY_ROUTE, of this many bytes
  std::atomic<int> removed;         // events that the next command takes away
  std::atomic<int> die;             // ends at the next command, before the answer
  std::atomic<int> refuse_restore;  // the errno for the next channel of another dappled
  // Permanent settings.
  std::atomic<int> other_version;
};

}  // namespace dapple::tests
