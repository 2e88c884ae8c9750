// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Access to the program's memory at addresses that it gives to the kernel: a bad address is an error, not a crash. Any
// thread of the process that owns_table() may call these functions. All except know_stack() are async-signal-safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapple::doors {

// Makes the other functions fast for addresses on this thread's stack. The first call of a thread may allocate memory.
void know_stack();

// As the kernel's copy_from_user() and copy_to_user(). False: EFAULT.
bool copy_from_program(void* to, uint64_t from, size_t size);
bool copy_to_program(uint64_t to, const void* from, size_t size);

// Tells whether the program can write there. The bytes do not change.
bool is_writable(uint64_t address, size_t size);

}  // namespace dapple::doors
