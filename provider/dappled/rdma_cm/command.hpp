// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The pieces that the commands' files share.
#pragma once

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "provider/dappled/rdma_cm/ids/id_state.hpp"
#include "provider/dappled/rdma_cm/service.hpp"

namespace dapple::dappled::rdma_cm {

// A handler's result in place of an errno: the last dappled has already carried out the command.
inline constexpr int kDoneBefore = -1;

// Older libraries write shorter commands, of `least` bytes or more; the rest counts as zero.
template <class Command>
bool Service::read(const Call& call, Command& command, size_t least) {
  if (call.in.size() < least) return false;
  command = {};
  memcpy(&command, call.in.data(), std::min(call.in.size(), sizeof command));
  return true;
}

// Older libraries have room for the first part of the answer only.
template <class Response>
int Service::write(Call& call, const Response& response, size_t least) {
  if (call.room < least) return ENOSPC;
  call.answer.length = std::min(call.room, sizeof response);
  memcpy(call.answer.response.data(), &response, call.answer.length);
  return 0;
}

}  // namespace dapple::dappled::rdma_cm
