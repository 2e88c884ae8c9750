// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transport that the packets of a queue pair take, and the reason for it.
#pragma once

#include <errno.h>

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

// All but the first two mean UDP. kTransportNames has them in this order.
enum class Transport : uint32_t {
  kNone,  // a queue pair without a peer
  kSharedMemory,
  kOtherHost,
  kRouteUnknown,
  kDatagrams,
  kSameProcess,
  kSwitchedOff,
  kCapture,
  kFaults,
  kPeerTakesNone,
  kPeerBusy,
  kOtherUser,
  kNoMemory,
  kNoDescriptor,
  kCap,
  kPeerNoMemory,
  kPeerNoDescriptor,
  kOtherRelease,
  kOverwritten,
  kPeerGone,
  kCount
};

struct TransportName {
  const char* key;    // for programs
  const char* title;  // for people: the reason
};

inline constexpr TransportName kTransportNames[] = {
    {"none", "not connected"},
    {"shared_memory", "the peer is on this host"},
    {"other_host", "another host or network namespace"},
    {"route_unknown", "the kernel does not report a route to the address"},
    {"datagrams", "unreliable datagrams"},
    {"same_process", "the same process"},
    {"switched_off", "DAPPLE_SAME_HOST=off"},
    {"capture", "DAPPLE_PCAP is set"},
    {"faults", "DAPPLE_FAULTS disturbs packets"},
    {"peer_takes_none", "the peer takes no packets by shared memory"},
    {"peer_busy", "too many programs connected to the peer at once"},
    {"other_user", "another user"},
    {"no_memory", "no memory"},
    {"no_descriptor", "no file descriptor"},
    {"cap", "DAPPLE_SAME_HOST_MIB limit reached"},
    {"peer_no_memory", "the peer has no memory"},
    {"peer_no_descriptor", "the peer has no file descriptor"},
    {"other_release", "the peer has another release of dapple"},
    {"overwritten", "the peer found the ring overwritten"},
    {"peer_gone", "the peer's process has ended"},
};
static_assert(sizeof kTransportNames / sizeof kTransportNames[0] == static_cast<size_t>(Transport::kCount));

// `transport` may come from another process.
constexpr const TransportName& name_of(Transport transport) {
  return kTransportNames[transport < Transport::kCount ? static_cast<size_t>(transport) : 0];
}

// The reason after a system call that needs a descriptor or memory has failed.
constexpr Transport lack_of(int error) {
  const bool descriptor = error == EMFILE || error == ENFILE || error == ETOOMANYREFS;
  return descriptor ? Transport::kNoDescriptor : Transport::kNoMemory;
}

}  // namespace dapple::soft
