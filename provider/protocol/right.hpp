// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Whether a peer copies to and from this process' memory without its help, and why not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

// kRightNames has them in this order. The peer itself reports those from kPeerOff to kPeerLacks.
enum class Right : uint16_t {
  kNone,   // no such peer is connected
  kAsked,  // the peer has not answered yet
  kGranted,
  kOff,
  kNoRoom,
  kPeerOff,
  kNotVisible,
  kRefused,
  kNoFile,
  kOtherMemory,
  kPeerLacks,
  kNotProved,
  kCount
};

struct RightName {
  const char* key;    // for programs
  const char* title;  // for people
};

inline constexpr RightName kRightNames[] = {
    {"none", ""},
    {"asked", "no: the peer has not answered yet"},
    {"granted", "yes"},
    {"off", "no: this program allows no peer"},
    {"no_room", "no: too many peers, or no memory"},
    {"peer_off", "no: the peer copies to no other program"},
    {"not_visible", "no: this process is not in the peer's PID namespace"},
    {"refused", "no: the kernel does not let the peer trace this process"},
    {"no_file", "no: the peer's /proc does not show this process"},
    {"other_memory", "no: the peer's /proc shows another process"},
    {"peer_lacks", "no: the peer has no file descriptor or memory"},
    {"not_proved", "no: the peer's proof is wrong"},
};
static_assert(sizeof kRightNames / sizeof kRightNames[0] == static_cast<size_t>(Right::kCount));

// `right` may come from another process.
constexpr const RightName& name_of(Right right) {
  return kRightNames[right < Right::kCount ? static_cast<size_t>(right) : 0];
}

constexpr bool is_peers_reason(Right right) {
  return right >= Right::kPeerOff && right <= Right::kPeerLacks;
}

}  // namespace dapple::soft
