// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The number of threads that wait for dappled in this library: a program that waits for it gets on, since each wait
// ends by itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

inline constinit std::atomic<uint32_t> open_questions{0};

class OpenQuestion {
 public:
  OpenQuestion() { open_questions.fetch_add(1, std::memory_order_relaxed); }
  ~OpenQuestion() { open_questions.fetch_sub(1, std::memory_order_relaxed); }
  OpenQuestion(const OpenQuestion&) = delete;
  OpenQuestion& operator=(const OpenQuestion&) = delete;
};

}  // namespace dapple::soft
