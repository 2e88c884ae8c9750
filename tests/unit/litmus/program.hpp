// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Litmus tests of RDMA: small programs of two nodes. Each node has one thread, two words of memory, and two queue pairs
// to the other node. The first node has the words x and y, the second one z and w.
//
//   x = 5            the CPU stores
//   load x           the CPU loads
//   await x          the CPU loads until x has changed
//   z <- x           an RDMA Write, if z is at the other node
//   x <- z           an RDMA Read, if z is at the other node
//   x <- z + 32      an RDMA FetchAdd to z; the old value goes to x
//   fence z <- x     the same with IBV_SEND_FENCE
//   z <- x @1        the same by the second queue pair
//   poll             waits for the next completion of the queue pair
//
// `;` separates steps, and `||` the threads.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dapple::litmus {

inline constexpr int kNodes = 2;
inline constexpr int kPairs = 2;  // of each node
inline constexpr int kWordsOfNode = 2;
inline constexpr int kWords = kNodes * kWordsOfNode;
inline constexpr int kMaxSteps = 6;  // of a thread
inline constexpr int kMaxLoads = 4;  // of a program

enum class Kind : uint8_t { kStore, kLoad, kPut, kGet, kAdd, kPoll, kAwait };

struct Step {
  Kind kind = Kind::kPoll;
  uint8_t local = 0;  // the number of a word
  uint8_t remote = 0;
  uint8_t value = 0;
  uint8_t pair = 0;
  bool fenced = false;

  bool is_request() const { return kind == Kind::kPut || kind == Kind::kGet || kind == Kind::kAdd; }
};

struct Program {
  std::array<std::vector<Step>, kNodes> threads;

  // Of the threads before this node's; of all, with kNodes.
  size_t loads_before(int node) const;
};

std::string text_of(const Program& program);
// The program of a text. Ends this process with a message if it is malformed or polls more than it posts.
Program parsed(std::string_view text);
// A program of up to four steps in each thread, at least one of them a request.
Program random_program(uint64_t seed);

// Word i begins with i + 1, so that values tell where they come from.
constexpr uint8_t first_value(int word) {
  return static_cast<uint8_t>(word + 1);
}

// The end of a run: the values of all words after every request has taken effect, and the results of the loads in the
// order of the text.
struct Outcome {
  std::array<uint8_t, kWords> words = {};
  std::array<uint8_t, kMaxLoads> loads = {};

  auto operator<=>(const Outcome&) const = default;
};

// "x=1 y=2 z=1 w=4 loads 1 2"
std::string text_of(const Outcome& outcome, const Program& program);

}  // namespace dapple::litmus
