// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// A connection whose end b matches tags. The input chooses the events: entries, receives, messages with any headers,
// lost, repeated and changed packets, references that cannot be followed, time, states. The assertions of the lists are
// on. Each entry has one last completion or is given back, and no memory changes but that of entries and receives.
#include <infiniband/tm_types.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/unit/provider-soft/matching_pair.hpp"

namespace {

using namespace dapple::fuzz;
using namespace dapple::roce;
using namespace dapple::soft;
using namespace dapple::soft::test;

constexpr uint32_t kMaxEntry = 600;     // bytes; the entries share their memory
constexpr uint32_t kMaxReceive = 300;   // bytes; so do the receives
constexpr uint64_t kFirstEntry = 1000;  // ids from here on are those of entries
constexpr size_t kMaxLink = 256;        // packets on their way

class Connection {
 public:
  Connection(bool reads, bool refers) : pair_(reads, refers) { refuse_accesses(); }

  void step(Choices& choices) {
    switch (choices.byte() % 16) {
      case 0:
      case 1:
        return add(choices);
      case 2:
        pair_.receive(++last_receive_, choices.below(kMaxReceive + 1));
        return;
      case 3:
      case 4:
        return send(choices);
      case 5:
        if (!handles_.empty() && pair_.remove(handles_[choices.byte() % handles_.size()])) ++given_back_;
        return;
      case 6:
        return change(choices);
      case 7:
        if (!pair_.a.link.empty()) pair_.a.link.pop_front();
        return;
      case 8:
        if (!pair_.a.link.empty()) pair_.a.link.push_back(pair_.a.link.front());
        return;
      case 9:
        deliver(pair_.b, pair_.a);
        return;
      case 10:
        if (std::min(pair_.a.qp->deadline(), pair_.b.qp->deadline()) != kNever) pair_.sleep();
        return;
      case 11:
        return move(choices);
      case 12:
        pair_.a.lends = choices.byte() % 4 == 0 ? UINT32_MAX : choices.byte() % 4;
        return;
      case 13:
        pair_.b.revoked = choices.byte() % 4 == 0;
        return;
      case 14: {
        const std::lock_guard lock(pair_.list.mutex);
        return pair_.list.tell_read(choices.word());
      }
      default:
        return exchange();
    }
  }

  void end() {
    exchange();
    QpAttributes attributes;
    attributes.state = QpState::kError;
    require(pair_.b.qp->state() == QpState::kReset || pair_.b.qp->modify(attributes, kState));
    check_completions();
    // No message keeps an entry.
    for (const uint32_t handle : handles_) pair_.remove(handle);
    require(pair_.used() == 0);
    require_old(kMaxReceive, kPlace);
    require_old(kPlace + kMaxEntry, pair_.b.bytes.size());
  }

 private:
  void add(Choices& choices) {
    if (pair_.list.is_full()) return;
    const uint64_t tag = choices.byte() % 4;
    const uint64_t mask = choices.byte() % 4 == 0 ? 1 : UINT64_MAX;
    const uint32_t key = choices.byte() % 16 == 0 ? dapple::roce::test::kBadKey : MatchingPair::kKey;
    handles_.push_back(pair_.add(kFirstEntry + handles_.size(), tag, choices.below(kMaxEntry + 1), key, mask));
  }

  // Its headers are plausible, or any bytes.
  void send(Choices& choices) {
    const uint8_t kind = choices.byte();
    if (kind < 100) {
      pair_.write_header(kind % 2 == 0 ? uint8_t{IBV_TMH_EAGER} : choices.byte(), choices.byte() % 4);
    } else if (kind < 200) {
      const uint64_t tag = choices.byte() % 4;
      pair_.write_rendezvous(tag, kind % 8 == 0 ? choices.word() : choices.below(kMaxEntry + 8),
                             kind % 16 == 1 ? dapple::roce::test::kBadKey : MatchingPair::kKey);
    } else {
      for (size_t at = 0; at < kRendezvousHeaderSize; ++at) pair_.a.bytes[at] = std::byte{choices.byte()};
    }
    if (pair_.a.receives.size() < 16) pair_.a.post_receive(100, 100000);
    pair_.send(kind % 2 == 0 ? choices.below(80) : choices.below(4 * dapple::roce::test::kMtu));
    pair_.transmit();
    deliver(pair_.a, pair_.b);
  }

  // A byte of the next packet, or its size.
  void change(Choices& choices) {
    if (pair_.a.link.empty()) return;
    std::vector<std::byte>& packet = pair_.a.link.front();
    const uint8_t place = choices.byte();
    if (place >= 0xF0) {
      packet.resize(packet.size() - std::min<size_t>(packet.size(), (place & 15) * 4));
    } else if (!packet.empty()) {
      packet[place % packet.size()] = std::byte{choices.byte()};
    }
  }

  void move(Choices& choices) {
    QpAttributes attributes;
    attributes.state = choices.byte() % 2 == 0 ? QpState::kError : QpState::kReset;
    if (!pair_.b.qp->modify(attributes, kState) || attributes.state == QpState::kError) return;
    is_reset_ = true;
    attributes.state = QpState::kReset;
    require(pair_.a.qp->modify(attributes, kState));
    pair_.a.link.clear();
    pair_.b.link.clear();
    pair_.a.loans.clear();
    require(pair_.a.connect(0x22) && pair_.b.connect(0x11));
    refuse_accesses();
  }

  // A changed packet may be a Write, and so change any memory.
  void refuse_accesses() {
    QpAttributes attributes;
    attributes.access = 0;
    require(pair_.b.qp->modify(attributes, kAccessFlags));
  }

  bool deliver(dapple::roce::test::Endpoint& from, dapple::roce::test::Endpoint& to) {
    if (from.link.empty()) return false;
    Packet packet;
    if (parse(from.link.front(), packet) == ParseError::kNone) {
      pair_.deliver(from, to);
    } else {
      from.link.pop_front();
    }
    return true;
  }

  void exchange() {
    for (size_t left = kMaxLink; left > 0; --left) {
      pair_.transmit();
      if (!deliver(pair_.a, pair_.b) && !deliver(pair_.b, pair_.a)) return;
    }
  }

  void require_old(size_t begin, size_t end) const {
    static const std::vector<std::byte> old(pair_.b.bytes.size(), kOld);
    require(memcmp(&pair_.b.bytes[begin], &old[begin], end - begin) == 0);
  }

  void check_completions() {
    std::vector<uint32_t> ends(handles_.size());
    for (const Completion& one : pair_.got()) {
      if (one.request_id < kFirstEntry) continue;
      require(one.request_id - kFirstEntry < ends.size());
      const bool is_last = one.status != CompletionStatus::kSuccess || (one.flags & kTagDataValid) != 0;
      if (is_last) require(++ends[one.request_id - kFirstEntry] == 1);
    }
    const size_t ended = static_cast<size_t>(std::count(ends.begin(), ends.end(), 1u));
    const size_t taken = handles_.size() - given_back_ - pair_.used();
    // RESET takes back what has begun, without a completion.
    require(is_reset_ ? ended <= taken : ended == taken);
  }

  MatchingPair pair_;
  std::vector<uint32_t> handles_;  // of all entries, also of old ones
  size_t given_back_ = 0;          // entries that the program has removed
  uint64_t last_receive_ = 0;
  bool is_reset_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  const uint8_t kind = choices.byte();
  const auto connection = std::make_unique<Connection>(kind % 4 != 0, kind % 8 >= 4);
  for (int steps = 0; steps < 1000 && !choices.is_over(); ++steps) connection->step(choices);
  connection->end();
  return 0;
}
