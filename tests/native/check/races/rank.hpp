// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Programs that use each other's memory: each is connected with each other one by two queue pairs of RC, or by two
// pairs of the halves of XRC. They do their work in one case after the other, each case in memory of its own.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include <atomic>

#include "tests/native/verbs/pair.hpp"

namespace dapple::tests {

inline constexpr int kRanks = 4, kLinks = 2;
inline constexpr size_t kMaxCases = 32, kCaseMemory = 8192;

// In memory that all share, for the time before the first request and after the last one.
struct RankMeeting {
  // The queue pairs that send to another program and receive from it: with RC the same one.
  std::atomic<uint32_t> senders[kRanks][kRanks][kLinks], receivers[kRanks][kRanks][kLinks];
  std::atomic<uint32_t> srqs[kRanks][kRanks][kLinks];  // of XRC
  std::atomic<uint64_t> addresses[kRanks];
  std::atomic<uint32_t> keys[kRanks];
  std::atomic<int> known{0}, connected{0};
  std::atomic<int> posted[kMaxCases];  // by say_posted(), which is no message of the device
  std::atomic<int> done[kMaxCases];
};

class Rank {
 public:
  enum class Kind : uint8_t { kRc, kXrc, kLossyRc };
  // `space`: a descriptor of another network namespace, which make_veth_pair() has joined to this one. The programs
  // with odd numbers are there. -1: all programs are here.
  Rank(RankMeeting& meeting, int number, Kind kind, int space)
      : meeting_(meeting), number_(number), kind_(kind), space_(space) {}
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  bool open();
  // In each case other programs have the roles. Returns the own one.
  int begin(int number_of_case);
  // All have done their work.
  bool end();

  // Requests to the memory of another program, which is named by its role, at `place` of it. `wait`: returns after the
  // completion has been polled.
  enum Wait : uint8_t { kWait, kNoWait, kUnsignaled };
  bool write(int to, size_t place, size_t size = 8, Wait wait = kWait, uint64_t value = 1, int link = 0);
  bool write_with_immediate(int to, size_t place);
  bool read(int from, size_t place, size_t size = 8, size_t into = kScratch);
  // Returns the old value.
  uint64_t add(int to, size_t place, uint64_t value, Wait wait = kWait);
  uint64_t swap(int to, size_t place, uint64_t compare, uint64_t value);
  // A message of 8 bytes from `from` of the own memory.
  bool send(int to, size_t from = kScratch, Wait wait = kWait);
  // Waits for a message.
  bool receive(int from);
  // Waits for a message that goes to this place.
  bool take_at(int from, size_t place) { return post_receive(from, place) && await_message(from); }
  bool post_receive(int from, size_t place);
  bool await_message(int from) { return await_one(links_[program(from)][0].received); }

  // The order of two posts, without an order that the device could see.
  bool say_posted();
  bool hear_posted();

  volatile uint64_t& word(size_t place) { return *reinterpret_cast<volatile uint64_t*>(memory_ + offset_of(place)); }
  bool waits_for(size_t place, uint64_t value);

  // Places that all cases have.
  static constexpr size_t kScratch = kCaseMemory, kMessages = kScratch + 2048;

 private:
  struct Link {
    ibv_cq* sent = nullptr;
    ibv_cq* received = nullptr;
    ibv_qp* sender = nullptr;
    ibv_qp* receiver = nullptr;  // with RC the same one
    ibv_srq* srq = nullptr;      // of XRC
    int waiting = 0;             // completions that nobody has waited for
  };
  // The memory begins with the places that all cases have.
  size_t offset_of(size_t place) const {
    return place < kScratch ? kCaseMemory * static_cast<size_t>(case_ + 1) + place : place - kScratch;
  }
  ibv_context* open_device();
  ibv_gid address_of(int number) const;
  bool join(ibv_qp* qp, int peer, uint32_t remote) const;
  bool make(Link& link, int number_of_link, int peer);
  int program(int role) const { return (role + case_) % kRanks; }
  ibv_send_wr remote(ibv_wr_opcode opcode, int to, size_t place) const;
  bool post(int to, int link, ibv_send_wr& request, size_t place, size_t size, Wait wait);
  bool await_one(ibv_cq* cq);
  static bool patience(const std::atomic<int>& count);

  RankMeeting& meeting_;
  const int number_;
  const Kind kind_;
  const int space_;
  uint8_t source_ = 0;  // the index of the own address
  ibv_pd* pd_ = nullptr;
  ibv_xrcd* domain_ = nullptr;  // of XRC
  Link links_[kRanks][kLinks];
  ibv_mr* mr_ = nullptr;
  int case_ = 0;
  size_t posts_ = 0;
  alignas(4096) char memory_[kCaseMemory * (kMaxCases + 1)] = {};
};

}  // namespace dapple::tests
