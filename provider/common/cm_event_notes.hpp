// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The events of librdmacm that a program has got and not acknowledged, and those that it has not answered, for
// dapple-run --hang. libdapple-preload.so notes them, and the plug-in reads them.
#pragma once

#include <stdint.h>

#include <atomic>

#include "provider/common/cm_answer_notes.hpp"
#include "provider/common/stack.hpp"

namespace dapple::provider {

struct CmEventNote {
  std::atomic<const void*> event{nullptr};  // null: free. The rest is there when `is_complete`
  std::atomic<bool> is_complete{false};
  const void* id = nullptr;
  const void* listener = nullptr;  // the id that a connection request came to
  int type = 0;                    // rdma_cm_event_type
  Stack got = {};
};

struct CmEventNotes {
  static constexpr int kMax = 256;
  CmEventNote events[kMax];
  std::atomic<uint64_t> count{0};  // of all that the program has got

  // An id that a thread destroys.
  struct Ending {
    std::atomic<int> thread{0};  // 0: free
    std::atomic<const void*> id{nullptr};
  };
  static constexpr int kMaxEndings = 64;
  Ending endings[kMaxEndings];
  CmAnswerNotes unanswered;
};

// The name of the variable that libdapple-preload.so exports.
inline constexpr char kCmEventNotes[] = "dapple_cm_event_notes";

}  // namespace dapple::provider
