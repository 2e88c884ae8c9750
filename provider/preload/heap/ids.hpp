// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ids and event channels of librdmacm, and the completion channels, that the program destroys: their memory stays
// for a while.
#pragma once

#include "provider/member/heap.hpp"

namespace dapple::heap {

// The id or channel that this thread is destroying; its library frees its memory. Null at other times.
extern thread_local void* ending_id;

// True if free() must leave the block alone, because it is that object.
inline bool keeps(void* block) {
  if (block == nullptr || block != ending_id) [[likely]]
    return false;
  ending_id = nullptr;
  return true;
}

// The object has been freed, and its memory stays. The oldest one makes room.
void keep(void* object, const soft::IdWatcher& watcher, const char* function);
// Calls destroy(), in which the library frees the object, or refuses to.
template <typename Destroy>
void end(void* object, const soft::IdWatcher& watcher, const char* function, Destroy destroy) {
  ending_id = object;
  destroy();
  const bool is_kept = ending_id == nullptr;
  ending_id = nullptr;
  if (is_kept) keep(object, watcher, function);
}

void watch_ids(const soft::IdWatcher& watcher);
// Null until the plug-in watches.
const soft::IdWatcher* id_watcher();
// True after a report, with EINVAL in errno: the function has got an object that has ended.
bool has_ended(const void* object, const char* function);

}  // namespace dapple::heap
