// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages about the tree: the kernel's files about RDMA devices as real files, in a folder that dappled keeps up to
// date. It has the parts "sys" and "dev". The folder goes when dappled ends; a program then asks the next dappled.
#pragma once

#include <cstdint>

#include "provider/protocol/messages.hpp"

namespace dapple::soft {

inline constexpr size_t kTreePathSize = 1024;

// Of kTree, with the folder's descriptor, opened for reading.
struct TreeReply {
  MessageHeader header;
  char path[kTreePathSize] = {};  // the folder's, absolute, in dappled's mount namespace
};

// Of kRefreshTree: before a program opens this file.
struct RefreshTreeRequest {
  MessageHeader header;
  char path[kTreePathSize] = {};  // relative to the tree's folder; it may lead through the tree's links
};

struct RefreshTreeReply {
  MessageHeader header;
  uint8_t unreadable = 0;  // the kernel's read() of this entry fails with EINVAL
  uint8_t reserved[7] = {};
};

static_assert(sizeof(RefreshTreeRequest) <= kMaxMessageSize && sizeof(TreeReply) <= kMaxMessageSize);

}  // namespace dapple::soft
