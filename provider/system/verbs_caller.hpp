// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The libibverbs on whose behalf a function of ours runs.
#pragma once

namespace dapple::soft {

// An address in the innermost libibverbs that this thread's stack shows. Null if the stack shows none: a program that
// contains libibverbs, or no libibverbs at all. Unwinds the stack. Takes the loader's lock.
const void* calling_verbs_library();

}  // namespace dapple::soft
