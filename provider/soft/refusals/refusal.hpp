// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reason for which a call of a verb fails, for dapple-run --explain and --check. The function that finds an
// obstacle leaves the reason as its thread's refusal and returns the errno; the outermost table of operations
// (provider/soft/ explain) shows the refusal if the program gets that errno. Every errno that a verb returns has a
// reason (tests/checks/refusals).
//
// No function here takes a lock. Without explanations, refuse() returns the errno and does nothing. The text is in
// memory of the heap, because a plugin has little room in the threads' static memory.
#pragma once

#include <cstddef>

namespace dapple::soft {

// Of one thread. `text` is a clause that can follow "ibv_modify_qp() fails with EINVAL:", and, after a line break, the
// remedy as a sentence. It is valid until the thread's next refuse(), and empty if there was no memory for it.
struct Refusal {
  static constexpr size_t kSize = 800;  // of the text
  int error = 0;                        // 0: there is none
  bool is_planned = false;              // DAPPLE_FAULTS planned it
  const char* text = "";
};

// From now on the process explains refusals. Call it before the first device is open.
void explain_refusals();
bool explains_refusals();

// Keeps the reason, and returns `error`.
__attribute__((format(printf, 2, 3), cold, noinline)) int refuse(int error, const char* format, ...);
// For an error whose reason a function below has kept, and returned in another form than an errno: returns `error`.
int refusal_error(int error);
// ENOMEM: there is no memory for these objects.
int refuse_memory(const char* objects);
// The call fails because DAPPLE_FAULTS says so.
int refuse_by_plan(int error);

// This thread's refusal since the last forget_refusal().
const Refusal& refusal();
void forget_refusal();

}  // namespace dapple::soft
