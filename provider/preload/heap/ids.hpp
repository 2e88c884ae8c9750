// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ids and event channels of librdmacm that the program destroys: their memory stays for a while.
#pragma once

#include "provider/member/heap.hpp"

namespace dapple::heap {

// The id or channel that this thread is destroying; librdmacm frees its memory. Null at other times.
extern thread_local void* ending_id;

// True if free() must leave the block alone, because it is that object.
inline bool keeps(void* block) {
  if (block == nullptr || block != ending_id) [[likely]]
    return false;
  ending_id = nullptr;
  return true;
}

void watch_ids(const soft::IdWatcher& watcher);
// Null until the plug-in watches.
const soft::IdWatcher* id_watcher();
// True after a report, with EINVAL in errno: the function has got an object that has ended.
bool has_ended(const void* object, const char* function);

}  // namespace dapple::heap
