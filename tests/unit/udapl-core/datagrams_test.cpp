// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of datagram endpoints that work without a device.
#include <netinet/in.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/connection/address_table.hpp"
#include "udapl/core/connection/ud_message.hpp"
#include "udapl/core/connection/ud_replies.hpp"
#include "udapl/core/counters.hpp"

using namespace dapple::udapl;

namespace {

// Addresses are only compared.
ibv_ah* address(uintptr_t number) {
  return reinterpret_cast<ibv_ah*>(number * 64 + 4096);
}

void address_table__empty_has_nothing() {
  AddressTable table;
  CHECK(!table.contains(nullptr));
  CHECK(!table.contains(address(1)));
  CHECK(!table.remove(address(1)));
}

void address_table__has_what_was_added_and_not_removed() {
  AddressTable table;
  std::set<uintptr_t> there;
  uint32_t random = 1;
  for (int step = 0; step < 20000; ++step) {
    random = random * 1664525 + 1013904223;
    const uintptr_t number = random >> 20 & 255;
    if (there.count(number)) {
      CHECK(table.remove(address(number)));
      there.erase(number);
    } else {
      CHECK(!table.remove(address(number)));
      table.add(address(number));
      there.insert(number);
    }
    if (step % 64 != 0) continue;
    for (uintptr_t i = 0; i < 256; ++i) CHECK_EQUAL(table.contains(address(i)), there.count(i) == 1);
  }
  size_t taken = 0;
  table.clear([&](ibv_ah*) { ++taken; });
  CHECK_EQUAL(taken, there.size());
  CHECK(!table.contains(address(*there.begin())));
}

void address_table__what_a_removal_leaves_is_no_address() {
  AddressTable table;
  table.add(address(1));
  CHECK(table.remove(address(1)));
  CHECK(!table.contains(nullptr));
  CHECK(!table.contains(reinterpret_cast<ibv_ah*>(uintptr_t{1})));
}

void address_table__is_read_while_it_grows() {
  AddressTable table;
  table.add(address(0));
  std::atomic<bool> stop = false;
  std::atomic<bool> missed = false;
  std::thread reader([&] {
    while (!stop) {
      if (!table.contains(address(0))) missed = true;
    }
  });
  for (uintptr_t i = 1; i < 5000; ++i) table.add(address(i));
  for (uintptr_t i = 1; i < 5000; ++i) CHECK(table.remove(address(i)));
  stop = true;
  reader.join();
  CHECK(!missed);
}

void ud_message__is_understood() {
  std::vector<uint8_t> data(UdMessage::kMaxReplyData);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
  for (size_t size : {size_t{0}, size_t{1}, size_t{56}, data.size()}) {
    const UdMessage message(0x123456, 0x89abcdef, {data.data(), size});
    CHECK_EQUAL(message.size(), size + UdMessage::kHeaderSize);
    // The connection manager pads private data.
    std::vector<uint8_t> padded(message.data(), message.data() + message.size());
    padded.resize(180);
    const UdReceived received(padded);
    CHECK(received.ours);
    CHECK_EQUAL(received.qp_num, 0x123456);
    CHECK_EQUAL(received.serial, 0x89abcdef);
    CHECK_EQUAL(received.data.size(), size);
    CHECK(std::equal(received.data.begin(), received.data.end(), data.begin()));
  }
}

void ud_message__of_somebody_else_is_not() {
  const UdMessage message(7, 1, {});
  std::vector<uint8_t> bytes(message.data(), message.data() + message.size());
  CHECK(UdReceived(bytes).ours);
  for (size_t size = 0; size < bytes.size(); ++size) CHECK(!UdReceived({bytes.data(), size}).ours);
  for (size_t i = 0; i < 4; ++i) {
    auto other = bytes;
    other[i] ^= 1;
    CHECK(!UdReceived(other).ours);
  }
  auto too_long = bytes;
  too_long[7] = 1;  // claims that there is data
  CHECK(!UdReceived(too_long).ours);
  CHECK(UdReceived({}).data.empty());
}

void ud_replies__are_found_while_their_queue_pair_lives() {
  UdReplies replies;
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = 0x0100090a;
  const auto* address = reinterpret_cast<const sockaddr*>(&peer);
  for (uint32_t i = 1; i <= 300; ++i) {
    const dapple::verbs::SocketAddress from(address);
    replies.remember({from, 7, i, 100 + i % 2, now_ns(), UdMessage(100 + i % 2, i, {})});
  }
  const auto find = [&](uint32_t qp_num, uint32_t serial) {
    const UdMessage request(qp_num, serial, {});
    return replies.find(address, UdReceived({request.data(), request.size()}));
  };
  CHECK(find(7, 300) && find(7, 300)->qp_num == 100);
  CHECK(find(7, 299) && find(7, 299)->qp_num == 101);
  CHECK(!find(8, 300));
  CHECK(!find(7, 301));
  CHECK(!find(7, 1));  // long ago
  peer.sin_addr.s_addr = 0x0200090a;
  CHECK(!find(7, 300));
  peer.sin_addr.s_addr = 0x0100090a;
  replies.forget(100);
  CHECK(!find(7, 300));
  CHECK(find(7, 299));
}

void counters__requests_by_operation() {
  EpCounterSet counters;
  counters.add_request(DtoOperation::kSendUd, 100);
  counters.add_request(DtoOperation::kSend, 10);
  counters.add_request(DtoOperation::kFetchAndAdd, 8);
  counters.add_request(DtoOperation::kCompareAndSwap, 8);
  counters.add_request(DtoOperation::kBind, 5);
  counters.add_request(DtoOperation::kInvalidate, 5);
  std::vector<uint64_t> expected(kEpCounters);
  expected[static_cast<size_t>(EpCounter::kPostSendUd)] = 1;
  expected[static_cast<size_t>(EpCounter::kPostSendUd) + 1] = 100;
  expected[static_cast<size_t>(EpCounter::kPostSend)] = 1;
  expected[static_cast<size_t>(EpCounter::kPostSend) + 1] = 10;
  expected[static_cast<size_t>(EpCounter::kPostFetchAndAdd)] = 1;
  expected[static_cast<size_t>(EpCounter::kPostCompareAndSwap)] = 1;
  for (size_t i = 0; i < kEpCounters; ++i) CHECK_EQUAL(counters.at(i), expected[i]);
}

void counters__of_an_evd_add_up() {
  EvdCounterSet counters;
  counters.add(EvdCounter::kDequeueFound, 2);
  counters.add(EvdCounter::kDequeueNotFound, 3);
  counters.add(EvdCounter::kPollFound, 5);
  counters.add(EvdCounter::kPollNotFound, 7);
  CHECK_EQUAL(counters.at(static_cast<size_t>(EvdCounter::kDequeue)), 5);
  CHECK_EQUAL(counters.at(static_cast<size_t>(EvdCounter::kPoll)), 12);
  CHECK_EQUAL(counters.at(static_cast<size_t>(EvdCounter::kPollFound)), 5);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(address_table__empty_has_nothing),
      TEST(address_table__has_what_was_added_and_not_removed),
      TEST(address_table__what_a_removal_leaves_is_no_address),
      TEST(address_table__is_read_while_it_grows),
      TEST(ud_message__is_understood),
      TEST(ud_message__of_somebody_else_is_not),
      TEST(ud_replies__are_found_while_their_queue_pair_lives),
      TEST(counters__requests_by_operation),
      TEST(counters__of_an_evd_add_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
