// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/open_batches.hpp"

#include <cassert>
#include <string>

#include "provider/common/host_guards.hpp"
#include "provider/soft/explain/last_refusal.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/hang/hang_reporter.hpp"

namespace dapple::soft::hang {
namespace {

void report(const std::string& text, const char* remedy, const check::Stack* began) {
  const ErrnoGuard keep;
  explain::remember_refusal(text);
  check::Report report = {.level = check::Level::kError,
                          .kind = "missing-call",
                          .text = text,
                          .remedy = remedy,
                          .places = {{"called", check::here()}}};
  if (began != nullptr) report.places.push_back({"the batch was begun", *began});
  hang_reporter().show(report);
}

bool is_own(const OpenBatch& batch) {
  return batch.thread.load(std::memory_order_relaxed) == pthread_self();
}

bool is_begun(const OpenBatch& batch) {
  return batch.thread.load(std::memory_order_relaxed) != 0;
}

}  // namespace

void begin_batch(OpenBatch& batch) {
  assert(!is_begun(batch));
  // The stack stays: it is one of KnownStacks.
  batch.began.store(&static_cast<const check::Stack&>(check::here()), std::memory_order_relaxed);
  batch.thread.store(pthread_self(), std::memory_order_relaxed);
}

void end_batch(OpenBatch& batch) {
  batch.thread.store(0, std::memory_order_relaxed);
}

bool waits_for_itself(const OpenBatch& batch, const ibv_cq* cq) {
  if (!is_own(batch)) [[likely]]
    return false;
  report("ibv_start_poll() for " + explain::name_of(cq) +
             " fails with EBUSY: this thread has called it before, and has not called ibv_end_poll() since then. With "
             "other devices the thread waits for itself without end.",
         "Call ibv_end_poll() after each ibv_start_poll() that returns 0, also after a completion with an error.",
         batch.began.load());
  return true;
}

bool waits_for_itself(const OpenBatch& batch, const ibv_qp* qp) {
  if (!is_own(batch)) [[likely]]
    return false;
  report("ibv_wr_start() for " + explain::name_of(qp) +
             ": this thread has called it before, and has called neither ibv_wr_complete() nor ibv_wr_abort() since "
             "then. The requests of the first call are dropped. With other devices the thread waits for itself without "
             "end.",
         "Call ibv_wr_complete() or ibv_wr_abort() after each ibv_wr_start(), also if the program gives the requests "
         "up.",
         batch.began.load());
  return true;
}

bool is_not_begun(const OpenBatch& batch, const ibv_cq* cq) {
  if (is_begun(batch)) [[likely]]
    return false;
  report(
      "ibv_end_poll() for " + explain::name_of(cq) +
          ": no ibv_start_poll() has returned 0 before. With other devices, and with another thread that polls, this "
          "lets a lock go that the other thread needs.",
      "Call ibv_end_poll() only after an ibv_start_poll() that has returned 0. After ENOENT there is nothing to end.",
      nullptr);
  return true;
}

bool is_not_begun(const OpenBatch& batch, const ibv_qp* qp, const char* verb) {
  if (is_begun(batch)) [[likely]]
    return false;
  report(std::string(verb) + "() for " + explain::name_of(qp) + ": no ibv_wr_start() came before it.",
         "Call ibv_wr_start() before the requests of each ibv_wr_complete() or ibv_wr_abort().", nullptr);
  return true;
}

}  // namespace dapple::soft::hang
