// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The begin and the end of a batch of polls or posts: ibv_start_poll() and ibv_end_poll(), or ibv_wr_start() and
// ibv_wr_complete(). A batch holds a lock in between. These functions report a program that leaves one of the two out.
#pragma once

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/open_batch.hpp"

namespace dapple::soft::hang {

// The calling thread has begun a batch. Takes the stack of the verb's caller.
void begin_batch(OpenBatch& batch);
// It is about to end it, and lets the lock go afterwards. Another thread may have begun it.
void end_batch(OpenBatch& batch);

// True after a report: the calling thread has begun the batch that it begins now, so it would wait for itself.
bool waits_for_itself(const OpenBatch& batch, const ibv_cq* cq);
bool waits_for_itself(const OpenBatch& batch, const ibv_qp* qp);
// True after a report: nobody has begun the batch that `verb` ends, so nobody has its lock.
bool is_not_begun(const OpenBatch& batch, const ibv_cq* cq);
bool is_not_begun(const OpenBatch& batch, const ibv_qp* qp, const char* verb);

}  // namespace dapple::soft::hang
