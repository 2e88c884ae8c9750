// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Random operations of both ends of a ring, beside a queue that has the packets which the reader must get: alone and in
// groups, abandoned, looked at before they are taken, with the ring empty and full.
#include <string.h>

#include <deque>
#include <random>

#include "provider/soft/same_host/ring.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using Next = RingReader::Next;

namespace {

constexpr uint64_t kRuns = 60;
constexpr uint32_t kOperations = 5000;  // of a run
constexpr Addresses kAddresses[] = {{{1}, {2}}, {{1}, {3}}, {}};

struct Message {
  size_t size;
  uint8_t first;  // byte
  EntryKind kind;
  Addresses addresses;
  bool is_acknowledging;
  dapple::roce::Acknowledgement acknowledgement;
};

std::byte byte_of(const Message& message, size_t at) {
  return static_cast<std::byte>(1 + (message.first + 7 * at) % 255);
}

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed), sizes_(below(5)), patience_(below(4)), abandons_(below(3)) {
    assert_int_equal(memory_.create(file_), 0);
  }

  void step() {
    const uint32_t choice = below(100);
    if (choice < 25) {
      if (!reserve()) return;
      writer_.commit();
      written_.push_back(message_);
    } else if (choice < 35) {
      writer_.publish();
      published_ = written_.size();
    } else if (choice < 50) {
      if (!reserve()) return;
      writer_.publish_one();
      written_.push_back(message_);
      published_ = written_.size();
    } else if (choice < 50 + 8 * abandons_) {
      for (uint32_t left = 1 + below(4); left > 0; left--) reserve();
    } else {
      read();
    }
  }
  // Everything that was written is read, and nothing else.
  void finish() {
    writer_.publish();
    published_ = written_.size();
    while (take()) {
    }
    assert_true(written_.empty());
  }

 private:
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  size_t size() {
    switch (sizes_ == 4 ? below(4) : sizes_) {
      case 0:
        return 1 + below(60);
      case 1:
        return 1 + below(300);
      case 2:
        return 1 + below(kLongestRingPacket);
      default:
        return (1 + below(8)) * RingMemory::kLine - sizeof(RingEntry) * below(8);
    }
  }
  // Room for a new message_, with its bytes. False: the ring is full.
  bool reserve() {
    message_ = {.size = size(),
                .first = static_cast<uint8_t>(below(256)),
                .kind = below(9) == 0 ? EntryKind::kReference : EntryKind::kPacket,
                .addresses = kAddresses[below(8) == 0 ? below(3) : 0],
                .is_acknowledging = below(5) == 0,
                .acknowledgement = {below(1 << 24), 5}};
    std::byte* to = writer_.reserve(message_.size, message_.addresses, message_.kind,
                                    message_.is_acknowledging ? &message_.acknowledgement : nullptr);
    for (size_t i = 0; to != nullptr && i < message_.size; i++) to[i] = byte_of(message_, i);
    return to != nullptr;
  }

  // A reader takes all packets each time, all of them after a long pause, or some.
  uint32_t most_to_read() {
    if (patience_ == 0) return UINT32_MAX;
    if (patience_ == 1) return below(50) == 0 ? UINT32_MAX : 0;
    return below(40);
  }
  void read() {
    const uint32_t most = most_to_read();
    for (uint32_t i = 0; i < most && take(); i++) {
      if (below(3) == 0) (void)reader_.release();
    }
    if (below(2) == 0) (void)reader_.release();
  }
  // False if there is none. Packets of a long group come before it is published.
  bool take() {
    if (below(4) == 0) check(reader_.peek(packet_));
    const bool found = check(reader_.next(packet_));
    if (!found) return false;
    written_.pop_front();
    if (published_ > 0) published_--;
    return true;
  }
  bool check(Next found) {
    assert_true(found != Next::kBroken);
    if (found == Next::kNothing) {
      assert_int_equal(published_, 0);
      return false;
    }
    assert_false(written_.empty());
    expect(written_.front());
    return true;
  }
  void expect(const Message& message) {
    assert_int_equal(packet_.bytes.size(), message.size);
    assert_true(packet_.kind == message.kind);
    assert_memory_equal(packet_.addresses, &message.addresses, sizeof message.addresses);
    assert_int_equal(packet_.has_acknowledgement, message.is_acknowledging);
    if (message.is_acknowledging) assert_int_equal(packet_.acknowledgement.psn, message.acknowledgement.psn);
    assert_memory_equal(packet_.headers, packet_.bytes.data(), packet_.headers_size);
    for (size_t i = 0; i < message.size; i++) assert_true(packet_.bytes[i] == byte_of(message, i));
  }

  std::mt19937_64 random_;
  const uint32_t sizes_, patience_, abandons_;
  RingMemory memory_;
  OwnedFd file_;
  RingWriter writer_{memory_};
  RingReader reader_{memory_};
  RingPacket packet_ = {};
  Message message_ = {};
  std::deque<Message> written_;  // and not read
  size_t published_ = 0;         // of them, at least
};

uint64_t seed = 0;  // of the last run

void random_operations__the_reader_gets_each_packet_once(void**) {
  while (seed < kRuns) {
    Run run(++seed);
    for (uint32_t i = 0; i < kOperations; i++) run.step();
    run.finish();
  }
}

int print_seed(void**) {
  print_message("the last seed: %u\n", static_cast<unsigned>(seed));
  return 0;
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(random_operations__the_reader_gets_each_packet_once, print_seed)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
