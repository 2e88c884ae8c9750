// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The receives of a receiving queue pair of XRC, and their completions: those of the shared receive queue that the
// peer's packets name.
#pragma once

#include <stdint.h>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/xrc/xrc_foreign.hpp"
#include "provider/soft/xrc/xrc_table.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// Guarded by the queue pair's lock.
class XrcReceives final : public roce::ReceiveSource, public roce::CompletionSink {
 public:
  // `memory`: of the queue pair's own context.
  XrcReceives(XrcTable& table, XrcDomain& domain, roce::Memory& memory, QpEvents& events, const uint32_t& qpn)
      : table_(table), domain_(domain), memory_(memory), events_(events), qpn_(qpn), foreign_(domain.shared.get()) {}

  bool select(uint32_t srq, uint32_t& pd) override;
  bool take(roce::ReceiveRequest& request) override;
  bool complete(const roce::Completion& completion) override;
  // The queue pair has ended, and nobody uses it.
  void leave() { foreign_.leave(); }
  // It is in RESET.
  void reset() { foreign_.reset(); }
  // The queue of the receive that was taken last. It may be gone. Null: there is none, or another process has it.
  const ReceiveQueue* taken_from() const { return taken_queue_; }
  // The number of the selected queue's protection domain, or kForeignQueue with the queue's number.
  uint32_t selected_pd() const { return selected_pd_; }
  // Calls use(memory) with the memory of the context, or the process, that has this protection domain.
  template <typename Use>
  roce::Fault with_memory(uint32_t pd, Use use) {
    if (is_own_memory_ && pd == selected_pd_) return use(memory_);
    if (is_foreign(pd)) return use(foreign_);
    return table_.with_memory(domain_, selected_, pd, use);
  }
  // The same for the receive that was taken last. kAccess if its queue is gone: then the program may use the receive's
  // memory for something else.
  template <typename Use>
  roce::Fault with_receive_memory(Use use) {
    if (takes_foreign_) return use(foreign_);
    return table_.with_memory_of(domain_, taken_from_, [&](roce::Memory& memory, uint32_t) { return use(memory); });
  }

 private:
  XrcTable& table_;
  XrcDomain& domain_;
  roce::Memory& memory_;
  QpEvents& events_;
  const uint32_t& qpn_;  // of the queue pair, which gets it later
  XrcForeign foreign_;
  uint32_t selected_ = 0;
  uint32_t taken_from_ = 0;
  const ReceiveQueue* taken_queue_ = nullptr;
  bool takes_foreign_ = false;  // the receive that was taken last is another process' one
  uint32_t selected_pd_ = 0;
  bool is_own_memory_ = false;  // the selected queue belongs to the queue pair's context
};

}  // namespace dapple::soft
