// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Questions about the verbs objects and the rdma_cm ids of all programs, for `rdma resource`, and about a device's
// counters, for `rdma statistic`. dappled keeps nothing between them.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <type_traits>

#include "provider/protocol/messages.hpp"
#include "provider/protocol/resource_rows.hpp"

namespace dapple::soft {

struct ResourceCountsRequest {
  MessageHeader header;
  uint32_t device = 0;  // DeviceInfo::index
  uint32_t reserved = 0;
};

// Of all programs.
struct ResourceCountsReply {
  MessageHeader header;
  uint64_t counts[kResourceKinds] = {};  // by ResourceKind
  uint64_t cm_ids = 0;
};

// Asks for the objects of the program with this slot, or with the next higher one.
struct ResourcesRequest {
  MessageHeader header;
  uint32_t device = 0;
  ResourceKind kind = ResourceKind::kNone;
  uint8_t reserved[3] = {};
  uint32_t slot = 0;
  uint32_t first = 0;  // the place of the first wanted row
};

struct ShownResource {
  uint32_t number = 0;  // unlike that of any other object of its kind
  uint32_t users = 0;   // of a PD or CQ: the objects that need it
  ResourceRow row;      // its references are such numbers, too
};

struct ResourcesReply {
  static constexpr uint32_t kRows = 30;

  MessageHeader header;
  uint32_t slot = 0;     // 0: there is no such program
  uint32_t process = 0;  // its number where dappled runs; 0 if it is not visible there
  uint32_t next = 0;     // the place to continue at; 0: these are the last rows
  uint32_t count = 0;
  uint32_t lacks_rows = 0;  // not 0: the program has, or had, more objects than rows
  uint32_t reserved = 0;
  ShownResource rows[kRows];
};

struct CmIdsRequest {
  MessageHeader header;
  uint32_t device = 0;
  uint32_t reserved = 0;
  uint64_t after = 0;  // the key of the last id of the reply before
};

struct ShownCmId {
  uint64_t key = 0;
  uint32_t number = 0;
  uint32_t process = 0;  // as above
  uint32_t qpn = 0;      // 0: none yet
  uint16_t port_space = 0;
  uint8_t qp_type = 0;
  uint8_t state = 0;         // as the kernel numbers them: enum rdma_cm_state
  sockaddr_in6 source = {};  // or a sockaddr_in; all zero: none
  sockaddr_in6 destination = {};
};

struct CmIdsReply {
  static constexpr uint32_t kIds = 24;

  MessageHeader header;
  uint32_t count = 0;
  uint32_t more = 0;  // ids follow
  ShownCmId ids[kIds];
};

struct HwCountersRequest {
  MessageHeader header;
  uint32_t device = 0;
  uint32_t reserved = 0;
};

struct HwCounter {
  char name[32] = {};
  uint64_t value = 0;
};

// As in a port's folder hw_counters.
struct HwCountersReply {
  static constexpr uint32_t kCounters = 40;

  MessageHeader header;
  uint32_t count = 0;
  uint32_t reserved = 0;
  HwCounter counters[kCounters];
};

static_assert(sizeof(HwCountersReply) <= kMaxMessageSize && std::is_trivially_copyable_v<HwCountersReply>);
static_assert(sizeof(ResourcesReply) <= kMaxMessageSize && std::is_trivially_copyable_v<ResourcesReply>);
static_assert(sizeof(CmIdsReply) <= kMaxMessageSize && std::is_trivially_copyable_v<CmIdsReply>);

}  // namespace dapple::soft
