// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ends of objects that can be imported, and of their imports.
#pragma once

#include <cassert>

#include "provider/soft/imports/device_file.hpp"
#include "provider/soft/objects/fork_generation.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {

// Gives device memory the functions of ibv_memcpy_to_dm() and ibv_memcpy_from_dm().
void set_copies(ibv_dm& dm);

// ENOENT, as the kernel for a handle that it does not know: an import has ended the object by this verb.
int refuse_ended(const char* object, const char* verb);

template <typename Object>
bool has_ended(const Object& original) {
  return original.importing.end != ObjectEnd::kNone;
}

// An import has gone. Its structure stays.
template <typename Object>
void leave_original(Context& context, Object& import) {
  assert(import.importing.original != nullptr && import.importing.original->importing.original == nullptr);
  Object& original = *import.importing.original;
  // In a child of fork() the lock is of no use.
  if (context.generation == ForkGeneration::now() && context.file.leave(original)) delete &original;
}

// The program has ended the object by this structure of it, which belongs to `context`: the original, or an import.
template <typename Object>
void end_object(Context& context, Object& by) {
  if (by.importing.original != nullptr) {
    if (context.generation == ForkGeneration::now()) context.file.end(*by.importing.original, ObjectEnd::kByImport);
    leave_original(context, by);
    leave(context.live_objects);
    delete &by;
  } else if (context.generation != ForkGeneration::now() || context.file.end(by, ObjectEnd::kByOriginal)) {
    delete &by;
  }
}

}  // namespace dapple::soft::verbs
