// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include <algorithm>
#include <atomic>
#include <climits>

// Threads: internally locked; each value is read separately.
struct rpma_conn_cfg {
  std::atomic<int> timeout_ms{RPMA_DEFAULT_TIMEOUT_MS};
  std::atomic<uint32_t> cq_size{10};
  std::atomic<uint32_t> rcq_size{0};
  std::atomic<uint32_t> sq_size{10};
  std::atomic<uint32_t> rq_size{10};
  std::atomic<bool> shared_channel{false};
  std::atomic<rpma_srq*> srq{nullptr};
};

struct rpma_srq_cfg {
  std::atomic<uint32_t> rq_size{20};
  std::atomic<uint32_t> rcq_size{20};
};

namespace dapple::rpma {

// The configurations that NULL stands for.
extern const rpma_conn_cfg kDefaultConnCfg;
extern const rpma_srq_cfg kDefaultSrqCfg;

// The size of a CQ in the form of verbs.
inline int cq_entries(uint32_t size) noexcept {
  return static_cast<int>(std::min<uint32_t>(size, INT_MAX));
}

}  // namespace dapple::rpma
