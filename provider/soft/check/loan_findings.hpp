// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Findings about memory that belongs to the device, because a request uses it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/lent/freed_marks.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::check {

// The memory that these segments name.
Pieces pieces_of(MemoryTable& memory, const Segments& segments);

// A request that uses memory.
struct MemoryUser {
  std::string name;  // "send request of queue pair 0x11 of dapple0"
  Pieces pieces;
  Stack posted;
};
// A request that uses some of these bytes, and that certainly is not complete for the program.
std::optional<MemoryUser> user_of(Checker& checker, const void* memory, size_t size, FreedMarks::How how);
// realloc() has given this memory back. `user`: of the block before. The caller is within realloc().
void report_if_moved(Checker& checker, const void* memory, size_t size, const std::optional<MemoryUser>& user);
// The program frees or unmaps this memory. The caller is within free() or munmap().
void report_if_lent(Checker& checker, const void* memory, size_t size, FreedMarks::How how, const Stack& stack);
// The program deregisters this memory, or gives its region other memory. `end_name`: "deregistered", for example.
void report_if_lent(Checker& checker, const ibv_mr& mr, const char* end_name);
// The program destroys this address handle.
void report_if_addressed(Checker& checker, const ibv_ah* address_handle);
// The program posts a request with memory that it has freed or poisoned itself, as AddressSanitizer knows. `what`:
// "send request".
void report_if_poisoned(Checker& checker, const char* what, const Owner& owner, const Pieces& pieces,
                        const Stack& posted);
// Reports an inline request whose bytes a GPU has. The post crashes then.
void report_if_gpu_inline(Checker& checker, const Qp& qp, const Segments& segments);
// The program posts a request that sends these bytes, without a fence.
void report_if_not_fenced(Checker& checker, const Qp& qp, const Pieces& pieces, const Stack& posted);
// The program has changed these before it has got a completion.
void report_changed(Checker& checker, const std::vector<ChangedLoan>& changed);
// A message replaces another one that the program has not polled.
void report_overwritten(Checker& checker, const WithheldBytes::Overwritten& message);
// The program has written into the memory of these before this poll, which has got their completions.
void report_written(Checker& checker, const std::vector<WithheldBytes::Changed>& changed);
// The program looks at the buffer of a request before the poll. In a handler of SIGSEGV, with no lock.
void report_look(const Look& look);
// The program has polled the completion of this request, and has freed what its wr_id points to before.
void report_freed_context(Checker& checker, uint64_t id, const PostedContexts::Freed& context);

// A request that is being posted.
struct NewRequest {
  const char* what;  // "send request"
  const Owner& owner;
  bool is_written;  // the device writes to its memory
  const Pieces& pieces;
  const Stack& posted;
};
// A note if another request uses some of its bytes, and the device writes to them. A send of a Read's result behind a
// fence is right.
void report_if_shared(Checker& checker, const NewRequest& request);

}  // namespace dapple::soft::check
