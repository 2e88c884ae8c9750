// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Contexts in a child of fork().
#pragma once

#include "provider/soft/objects/fork_generation.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft {

// If the parent's device has no objects, it becomes the child's, as if the child had opened it. librdmacm keeps such
// devices for the life of the process, so a child has no others. False if this is not possible.
bool revive(const ibv_context* context);
// Around a fork(), so that a child does not inherit the lock of a thread that it lacks.
void lock_revival();
void unlock_revival();

// ENODEV and its reason, for a verb on an object that is not usable().
int refuse_child();

// False in a child of fork(), where the parent's objects are invalid: verbs on them return ENODEV.
inline bool usable(const ibv_context* context) {
  return context_of(context)->generation == ForkGeneration::now() || revive(context);
}

}  // namespace dapple::soft
