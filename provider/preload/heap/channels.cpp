// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libibverbs' functions for a completion channel, which it makes and frees itself. The call of one is reported, and
// fails, if the program has destroyed the channel.
#include <errno.h>
#include <infiniband/verbs.h>

#include "provider/preload/heap/ids.hpp"
#include "provider/preload/heap/next.hpp"

using namespace dapple::heap;

namespace {

constinit Next<int(ibv_comp_channel*)> next_destroy_comp_channel("ibv_destroy_comp_channel");
constinit Next<int(ibv_comp_channel*, ibv_cq**, void**)> next_get_cq_event("ibv_get_cq_event");

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// librdmacm destroys the channels of a synchronous id while it destroys the id.
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  const dapple::soft::IdWatcher* watcher = id_watcher();
  if (watcher == nullptr || ending_id != nullptr) return next_destroy_comp_channel.get()(channel);
  if (has_ended(channel, "ibv_destroy_comp_channel")) return EINVAL;
  int result = 0;
  end(channel, *watcher, "ibv_destroy_comp_channel", [&] { result = next_destroy_comp_channel.get()(channel); });
  if (result == EBUSY) watcher->channel_is_busy(channel);
  return result;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return has_ended(channel, "ibv_get_cq_event") ? -1 : next_get_cq_event.get()(channel, cq, cq_context);
}

}  // extern "C"
#pragma GCC visibility pop
