// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes of one host, connected by two queue pairs: an initiator, which a test describes, and a target, which
// only takes messages. Both map the memory that the initiator reaches, so the initiator sees what the target's CPU
// sees.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

#include <atomic>
#include <cstdint>

namespace dapple::tests {

inline constexpr size_t kWeakBytes = 64 * 1024;
inline constexpr int kWeakPairs = 2;

struct WeakStage {
  std::atomic<uint32_t> qpn[2][kWeakPairs];  // of the initiator and the target
  std::atomic<uint32_t> rkey{0};
  std::atomic<uint64_t> address{0};
  // A message that arrives makes the target compare the first `compared` bytes with `expected`, and then store
  // `expected` at `answered`.
  std::atomic<uint32_t> compared{0};
  std::atomic<char> expected{0};
  std::atomic<uint32_t> answered{kWeakBytes - 1};
  std::atomic<uint32_t> received{0};  // messages
  std::atomic<uint32_t> missing{0};   // of them: bytes were different
  alignas(4096) char reached[kWeakBytes];
};

extern WeakStage* weak_stage;

// The initiator.
class WeakEnd {
 public:
  // number: 0, or 1 for the target.
  explicit WeakEnd(int number) : number_(number) {}
  bool open(void* memory);

  ibv_mr* mr() const { return mr_; }
  ibv_cq* cq() const { return cq_; }
  ibv_qp* qp(int pair) const { return qps_[pair]; }
  char* mine() const { return mine_; }

  // A signaled request between `local` in mine() and `remote` in the reached memory. `value`: the addend of an atomic.
  void post(int pair, ibv_wr_opcode opcode, size_t local, size_t remote, uint32_t length, unsigned flags = 0,
            uint64_t value = 0);
  // Polls this many completions. Those of one queue pair come in the order of the posts.
  void complete(int count);
  // Until all earlier Writes of the queue pair are visible: a Read of another place.
  void make_visible(int pair);

 private:
  const int number_;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qps_[kWeakPairs] = {};
  char* mine_ = nullptr;
  uint64_t posted_[kWeakPairs] = {};
  uint64_t completed_[kWeakPairs] = {};
};

struct WeakOptions {
  const char* target_off = nullptr;  // an environment variable that is "off" in this process
  bool target_alone = false;         // the initiator has no faults
};

// Runs both processes. `body` is the initiator's, and reports by failed().
void run_weak(const char* name, void (*body)(WeakEnd&), const WeakOptions& options = {});

}  // namespace dapple::tests
