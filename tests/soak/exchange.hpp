// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The exchange of the two programs of a pair over one connection. They meet, both make the transfers of a batch, they
// meet again, and each compares the bytes that arrived in its memory with the seed's.
#pragma once

#include "tests/soak/batch.hpp"
#include "tests/soak/link.hpp"
#include "tests/soak/mapping.hpp"
#include "tests/soak/news.hpp"

namespace dapple::soak {

class Exchange {
 public:
  // seed: used by the client, which tells it to the server.
  Exchange(Link& link, bool server, bool atomics_add, bool has_atomics, uint64_t seed, WorkerNews& news,
           const Shared& shared)
      : link_(link),
        side_(server ? 0 : 1),
        atomics_add_(atomics_add),
        has_atomics_(has_atomics),
        seed_(seed),
        news_(news),
        shared_(shared) {}

  // False if no client asked. Throws Ended. Close the link before this object goes: it has the memory.
  bool run();
  // Both sides have been connected. From then on the death of dappled must not matter.
  bool connected() const { return connected_; }
  uint64_t seed() const { return seed_; }

 private:
  enum class Word : uint32_t { kHello, kReady, kData, kDone, kBye, kNothing };
  struct Header {
    uint64_t magic = 0;
    Word word = Word::kNothing;
    uint32_t size = 0;
    uint64_t number = 0;
    uint64_t seed = 0;
    Key key;
  };

  bool server() const { return side_ == 0; }
  uint32_t peer_side() const { return 1 - side_; }
  void greet();
  void make_data();
  void prepare(uint64_t number);
  void transfer(uint32_t index);
  void check(uint64_t number);
  void check_written(uint64_t number);
  void check_read(uint64_t number);
  void check_atomics(uint64_t number);
  void post_receive(uint32_t slot);
  void say(Word word, uint32_t slot, uint64_t number = 0, uint32_t size = 0, uint64_t seed = 0);
  template <class Condition>
  void wait_until(Condition condition, const char* what);
  void handle(const Completion& completion);
  void take(uint32_t slot, uint32_t length);
  void take_data(const Header& header, const unsigned char* bytes, uint32_t length);
  bool all_done() const { return completed_ == posted_; }

  Link& link_;
  const uint32_t side_;
  const bool atomics_add_, has_atomics_;
  uint64_t seed_;
  WorkerNews& news_;
  const Shared& shared_;
  bool connected_ = false;
  Mapping messages_, data_;
  unsigned char* area_ = nullptr;  // in data_
  Layout layout_;
  Batch batch_;
  uint64_t posted_ = 0, completed_ = 0;
  // The messages of the peer so far.
  bool greeted_ = false, bye_ = false;
  uint64_t ready_ = 0, done_ = 0;  // batches, counted from 1
  uint32_t arrived_ = 0;           // of its Sends in this batch
};

}  // namespace dapple::soak
