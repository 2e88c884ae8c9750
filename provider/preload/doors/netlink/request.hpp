// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A request over RDMA netlink: what it asks for, and what the kernel lets such a request do.
#pragma once

#include <linux/netlink.h>
#include <stdint.h>

namespace dapple::doors {

// A command of the client NLDEV, as in the kernel's table.
struct NldevCommand {
  bool known = false;
  bool dumps = false;  // it lists everything if the request has NLM_F_DUMP
  bool admin = false;  // it needs CAP_NET_ADMIN
};

struct NetlinkRequest {
  const nlmsghdr* header = nullptr;
  // A message without NLM_F_REQUEST, and a control message, gets no answer but an acknowledgement.
  bool is_request = false;
  bool nldev = false;  // for the client NLDEV, which knows the devices
  unsigned operation = 0;
  NldevCommand command;
  bool dump = false;
  bool acknowledge = false;

  // The attributes that are looked at. One that is malformed is as one that is absent, which the kernel refuses, too.
  bool has_index = false;
  uint32_t index = 0;
  bool has_port = false;
  uint32_t port = 0;
  const char* door = "";  // "uverbs", "rdma_cm"
  bool has_id = false;    // of the object that the command is about
  uint32_t id = 0;
  bool has_counted = false;  // a statistic is about a kind of objects
  uint32_t counted = 0;      // RDMA_NLDEV_ATTR_STAT_RES: the attribute of their table
};

// `header` is followed by the whole message. Every byte may be hostile.
NetlinkRequest read_request(const nlmsghdr* header);

}  // namespace dapple::doors
