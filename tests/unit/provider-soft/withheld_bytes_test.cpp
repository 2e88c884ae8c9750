// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/withheld_bytes.hpp"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::ClosedPages;
using dapple::soft::check::Look;
using dapple::soft::check::MappedMemory;
using dapple::soft::check::WithheldBytes;

constexpr size_t kSize = 64;
constexpr uint32_t kKey = 7, kQpn = 0x11, kOtherQpn = 0x12;
constexpr std::byte kOld{1}, kData{2}, kProgram{3};

std::byte memory[2 * kSize];
std::byte data[2 * kSize];
const int queue = 0;

MappedMemory mapped;

std::atomic<int> looks;  // a handler of SIGSEGV changes it
struct sigaction of_check;

int set_up(void**) {
  looks = 0;
  std::fill(std::begin(memory), std::end(memory), kOld);
  std::fill(std::begin(data), std::end(data), kData);
  return 0;
}

// `qpn`: 0 for a shared receive queue.
uint64_t add(WithheldBytes& withheld, const void* receives, uint64_t id, size_t at = 0, uint32_t qpn = kQpn,
             bool fills = false) {
  const auto begin = reinterpret_cast<uintptr_t>(memory) + at;
  WithheldBytes::Request request;
  request.receives = receives;
  request.id = id;
  request.owner.qpn = qpn;
  request.pieces = {{begin, begin + kSize / 2, kKey}, {begin + kSize / 2, begin + kSize, kKey}};
  return withheld.add(std::move(request), fills);
}

bool all_are(size_t at, size_t size, std::byte value) {
  return std::all_of(memory + at, memory + at + size, [&](std::byte byte) { return byte == value; });
}

void polled__receive__brings_the_bytes_that_arrived(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 5);
  assert_true(withheld.store(kQpn, memory, data, 20));
  assert_true(all_are(0, 20, WithheldBytes::kPattern) && all_are(20, kSize - 20, kOld));
  withheld.receive_completes(&queue, 5, kQpn, 8);
  assert_true(withheld.polled(kQpn, 4, true).empty());
  assert_true(all_are(0, 20, WithheldBytes::kPattern));
  assert_true(withheld.polled(kQpn, 5, true).empty());
  assert_true(all_are(0, 20, kData) && all_are(20, kSize - 20, kOld));
  assert_false(withheld.store(kQpn, memory, data, 20));
}

void polled__filled_receive__brings_the_old_bytes_back(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 5, 0, kQpn, true);
  assert_true(all_are(0, kSize, WithheldBytes::kPattern));
  memory[60] = kProgram;
  assert_true(withheld.store(kQpn, memory, data, 20));
  withheld.receive_completes(&queue, 5, kQpn, 8);
  assert_true(withheld.polled(kQpn, 5, true).empty());
  assert_true(all_are(0, 20, kData) && all_are(20, 40, kOld) && memory[60] == kProgram);
}

void polled__buffer_written_before_the_arrival__tells_the_place(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 5);
  memory[33] = kProgram;
  assert_true(withheld.store(kQpn, memory, data, kSize / 2));
  assert_true(withheld.store(kQpn, memory + kSize / 2, data, kSize / 2));
  withheld.receive_completes(&queue, 5, kQpn, 8);
  const auto changed = withheld.polled(kQpn, 5, true);
  assert_int_equal(changed.size(), 1);
  assert_int_equal(changed[0].at, 33);
  assert_int_equal(changed[0].request.id, 5);
  assert_true(all_are(0, kSize, kData));
}

void polled__buffer_written_after_the_arrival__tells_the_place(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 5);
  assert_true(withheld.store(kQpn, memory, data, 20));
  memory[19] = kProgram;
  withheld.receive_completes(&queue, 5, kQpn, 8);
  const auto changed = withheld.polled(kQpn, 5, true);
  assert_true(changed.size() == 1 && changed[0].at == 19);
}

// No message, or one behind which the program writes.
void polled__no_bytes_of_the_device_there__tells_nothing(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 5);
  memory[0] = kProgram;
  withheld.receive_completes(&queue, 5, kQpn, 8);
  assert_true(withheld.polled(kQpn, 5, true).empty());
  add(withheld, &queue, 6);
  assert_true(withheld.store(kQpn, memory, data, 20));
  memory[20] = kProgram;
  withheld.receive_completes(&queue, 6, kQpn, 8);
  assert_true(withheld.polled(kQpn, 6, true).empty());
  assert_true(memory[20] == kProgram);
}

void polled__later_request__brings_earlier_results(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, nullptr, 1);
  add(withheld, nullptr, 1, kSize);
  withheld.add_signaled(kQpn, 9);
  assert_true(withheld.store(kQpn, memory, data, kSize / 2));
  assert_true(withheld.store(kQpn, memory + kSize, data, kSize / 2));
  assert_true(withheld.polled(kQpn, 1, false).empty());
  assert_true(all_are(0, kSize / 2, WithheldBytes::kPattern));
  assert_true(withheld.polled(kQpn, 9, false).empty());
  assert_true(all_are(0, kSize / 2, kData) && all_are(kSize, kSize / 2, kData));
}

void polled__request_before_a_result__brings_nothing(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, nullptr, 1);
  withheld.add_signaled(kQpn, 8);
  add(withheld, nullptr, 2, kSize);
  withheld.add_signaled(kQpn, 9);
  assert_true(withheld.store(kQpn, memory + kSize, data, 8));
  assert_true(withheld.polled(kQpn, 8, false).empty());
  assert_true(all_are(kSize, 8, WithheldBytes::kPattern));
}

void polled__requests_with_one_id__brings_bytes_with_the_last(void**) {
  WithheldBytes withheld{mapped};
  for (int i = 0; i < 2; i++) withheld.add_signaled(kQpn, 0);
  add(withheld, nullptr, 0);
  withheld.add_signaled(kQpn, 0);
  assert_true(withheld.store(kQpn, memory, data, 8));
  for (int i = 0; i < 2; i++) {
    assert_true(withheld.polled(kQpn, 0, false).empty());
    assert_true(all_are(0, 8, WithheldBytes::kPattern));
  }
  withheld.add_signaled(kQpn, 0);
  assert_true(withheld.polled(kQpn, 0, false).empty());
  assert_true(all_are(0, 8, kData));
  // One request is left.
  add(withheld, nullptr, 0);
  withheld.add_signaled(kQpn, 0);
  assert_true(withheld.store(kQpn, memory, data, 8));
  assert_true(withheld.polled(kQpn, 0, false).empty());
  assert_true(all_are(0, 8, WithheldBytes::kPattern));
  assert_true(withheld.polled(kQpn, 0, false).empty());
  assert_true(all_are(0, 8, kData));
}

// Two threads poll one completion queue, and the second one tells first.
void polled__later_completion_is_told_first__brings_bytes(void**) {
  WithheldBytes withheld{mapped};
  withheld.add_signaled(kQpn, 1);
  add(withheld, nullptr, 2);
  withheld.add_signaled(kQpn, 2);
  assert_true(withheld.store(kQpn, memory, data, 8));
  assert_true(withheld.polled(kQpn, 2, false).empty());
  assert_true(all_are(0, 8, kData));
  assert_true(withheld.polled(kQpn, 1, false).empty());
}

// Bytes that came too late would break a correct program.
void polled__earlier_requests_are_over__brings_bytes(void**) {
  WithheldBytes withheld{mapped};
  withheld.remove_signaled(kQpn, withheld.add_signaled(kQpn, 0), 0);
  withheld.add_signaled(kOtherQpn, 0);
  withheld.end(kOtherQpn, nullptr);
  for (const uint32_t qpn : {kQpn, kOtherQpn}) {
    const size_t at = qpn == kQpn ? 0 : kSize;
    add(withheld, nullptr, 0, at, qpn);
    withheld.add_signaled(qpn, 0);
    assert_true(withheld.store(qpn, memory + at, data, 8));
    assert_true(withheld.polled(qpn, 0, false).empty());
    assert_true(all_are(at, 8, kData));
  }
}

// The receives of a shared queue have one id, and two queue pairs use them out of order.
void polled__shared_queue__brings_the_bytes_of_this_queue_pair(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 0, 0, 0);
  add(withheld, &queue, 0, kSize, 0);
  assert_true(withheld.store(kQpn, memory, data, 8));
  assert_true(withheld.store(kOtherQpn, memory + kSize, data, 8));
  withheld.receive_completes(&queue, 0, kOtherQpn, 8);
  withheld.receive_completes(&queue, 0, kQpn, 8);
  assert_true(withheld.polled(kOtherQpn, 0, true).empty());
  assert_true(all_are(kSize, 8, kData) && all_are(0, 8, WithheldBytes::kPattern));
  assert_true(withheld.polled(kQpn, 0, true).empty());
  assert_true(all_are(0, 8, kData));
}

void add__bytes_of_another_request__withholds_neither(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1);
  assert_true(withheld.store(kQpn, memory, data, 8));
  add(withheld, &queue, 2, kSize / 2);
  assert_true(all_are(0, 8, kData));
  add(withheld, &queue, 3, kSize / 2);
  assert_false(withheld.store(kQpn, memory, data, 8));
  assert_false(withheld.store(kQpn, memory + kSize / 2, data, 8));
  // When one is left, a new one shares its bytes as well.
  for (uint64_t id = 1; id <= 2; id++) {
    withheld.receive_completes(&queue, id, kQpn, 8);
    assert_true(withheld.polled(kQpn, id, true).empty());
  }
  add(withheld, &queue, 4, kSize / 2);
  assert_false(withheld.store(kQpn, memory + kSize / 2, data, 8));
  for (uint64_t id = 3; id <= 4; id++) {
    withheld.receive_completes(&queue, id, kQpn, 8);
    assert_true(withheld.polled(kQpn, id, true).empty());
  }
  add(withheld, &queue, 5, kSize / 2);
  assert_true(withheld.store(kQpn, memory + kSize / 2, data, 8));
}

// Two receives have the same memory, and the first message is there.
void receive_first_of_two(WithheldBytes& withheld, size_t size) {
  add(withheld, &queue, 1);
  add(withheld, &queue, 2);
  memcpy(memory, data, size);
  withheld.receive_completes(&queue, 1, kQpn, size);
}

void overwrite__other_bytes__tells_of_the_lost_message_once(void**) {
  WithheldBytes withheld{mapped};
  receive_first_of_two(withheld, 40);
  std::byte other[kSize];
  std::fill(std::begin(other), std::end(other), kData);
  other[35] = kProgram;
  const auto lost = withheld.overwrite(memory, other, kSize);
  assert_true(lost.has_value() && lost->first.id == 1 && lost->at == 35);
  assert_true(lost->second.has_value() && lost->second->id == 2);
  assert_false(withheld.overwrite(memory, other, kSize).has_value());
}

void overwrite__equal_bytes__tells_nothing(void**) {
  WithheldBytes withheld{mapped};
  receive_first_of_two(withheld, kSize);
  assert_false(withheld.overwrite(memory, data, kSize).has_value());
}

void overwrite__bytes_behind_the_message__tells_nothing(void**) {
  WithheldBytes withheld{mapped};
  receive_first_of_two(withheld, 8);
  assert_false(withheld.overwrite(memory + 8, data, kSize - 8).has_value());
}

void overwrite__polled_message__tells_nothing(void**) {
  WithheldBytes withheld{mapped};
  receive_first_of_two(withheld, 8);
  withheld.polled(kQpn, 1, true);
  std::fill(std::begin(data), std::end(data), kProgram);
  assert_false(withheld.overwrite(memory, data, 8).has_value());
}

// Nobody knows which of these receives has got the message.
void overwrite__equal_ids_of_a_shared_queue__tells_nothing(void**) {
  WithheldBytes withheld{mapped};
  for (int i = 0; i < 3; i++) add(withheld, &queue, 1, 0, 0);
  withheld.receive_completes(&queue, 1, kQpn, 8);
  assert_false(withheld.overwrite(memory, data, 8).has_value());
}

void yield__some_of_the_bytes__brings_all_that_arrived(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1);
  assert_true(withheld.store(kQpn, memory, data, 8));
  withheld.yield(memory + kSize - 1, 1);
  assert_true(all_are(0, 8, kData));
  assert_false(withheld.store(kQpn, memory + 8, data, 8));
}

void yield_key__key_of_the_request__brings_all_that_arrived(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1);
  assert_true(withheld.store(kQpn, memory, data, 8));
  withheld.yield_key(kKey + 1);
  assert_true(all_are(0, 8, WithheldBytes::kPattern));
  withheld.yield_key(kKey);
  assert_true(all_are(0, 8, kData));
}

void forget_memory__given_back__stays_as_it_is(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1);
  assert_true(withheld.store(kQpn, memory, data, 8));
  withheld.forget_memory(memory, 1);
  memset(memory, 0, kSize);
  withheld.end(kQpn, &queue);
  assert_true(all_are(0, kSize, std::byte{0}));
}

void end__queue_pair__brings_all_that_arrived(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1);
  add(withheld, nullptr, 1, kSize);
  assert_true(withheld.store(kQpn, memory, data, 8));
  assert_true(withheld.store(kQpn, memory + kSize, data, 8));
  withheld.end(kQpn, &queue);
  assert_true(all_are(0, 8, kData) && all_are(kSize, 8, kData));
}

void end__one_queue_pair_of_a_shared_queue__leaves_the_others(void**) {
  WithheldBytes withheld{mapped};
  add(withheld, &queue, 1, 0, 0);
  add(withheld, &queue, 2, kSize, 0);
  assert_true(withheld.store(kQpn, memory, data, 8));
  withheld.end(kQpn, &queue);
  assert_true(all_are(0, 8, kData));
  assert_true(withheld.store(kOtherQpn, memory + kSize, data, 8));
  withheld.end(&queue);
  assert_true(all_are(kSize, 8, kData));
}

void remove__refused_request__brings_the_old_bytes_back(void**) {
  WithheldBytes withheld{mapped};
  const uint64_t number = add(withheld, &queue, 1, 0, kQpn, true);
  withheld.remove(number);
  assert_true(all_are(0, kSize, kOld));
}

// A page of the program, and who may look at it.
struct Page {
  static constexpr size_t kRoom = size_t{1} << 16;  // at least a page on all machines

  Page() {
    bytes = static_cast<std::byte*>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    assert_true(bytes != MAP_FAILED);
    std::fill_n(bytes, kRoom, kOld);
    mapped.remember();
    // cmocka has a handler of its own for each test.
    sigaction(SIGSEGV, &of_check, nullptr);
  }
  ~Page() { munmap(bytes, kRoom); }

  uint64_t add(WithheldBytes& withheld, const void* receives) const {
    WithheldBytes::Request request;
    request.receives = receives;
    request.id = 5;
    request.owner.qpn = kQpn;
    request.pieces = {{reinterpret_cast<uintptr_t>(bytes), reinterpret_cast<uintptr_t>(bytes) + kRoom, kKey}};
    return withheld.add(std::move(request), false);
  }
  bool is_closed() const { return ClosedPages::has(bytes, kRoom); }

  MappedMemory mapped;
  std::byte* bytes;
};

void add__read_of_a_page__closes_it_until_the_poll(void**) {
  Page page;
  WithheldBytes withheld{page.mapped};
  page.add(withheld, nullptr);
  withheld.add_signaled(kQpn, 5);
  assert_true(page.is_closed());
  assert_true(withheld.store(kQpn, page.bytes, data, kSize));
  assert_true(withheld.polled(kQpn, 5, false).empty());
  assert_false(page.is_closed());
  assert_int_equal(looks, 0);
  assert_true(page.bytes[0] == kData && page.bytes[kSize] == kOld);
}

void receive_completes__message_of_a_page__closes_it_until_the_poll(void**) {
  Page page;
  const std::vector<std::byte> message(Page::kRoom, kData);
  WithheldBytes withheld{page.mapped};
  page.add(withheld, &queue);
  assert_true(withheld.store(kQpn, page.bytes, message.data(), Page::kRoom));
  assert_false(page.is_closed());
  withheld.receive_completes(&queue, 5, kQpn, Page::kRoom);
  assert_true(page.is_closed());
  assert_true(withheld.polled(kQpn, 5, true).empty());
  assert_false(page.is_closed());
  assert_true(std::equal(message.begin(), message.end(), page.bytes));
  assert_int_equal(looks, 0);
}

void polled__page_written_before_it_was_closed__tells_the_place(void**) {
  Page page;
  const std::vector<std::byte> message(Page::kRoom, kData);
  WithheldBytes withheld{page.mapped};
  page.add(withheld, &queue);
  assert_true(withheld.store(kQpn, page.bytes, message.data(), Page::kRoom));
  page.bytes[100] = kProgram;
  withheld.receive_completes(&queue, 5, kQpn, Page::kRoom);
  const auto changed = withheld.polled(kQpn, 5, true);
  assert_true(changed.size() == 1 && changed[0].at == 100);
}

// munmap() by a system call of the program's own.
void receive_completes__memory_is_gone__closes_nothing(void**) {
  Page page;
  const std::vector<std::byte> message(Page::kRoom, kData);
  WithheldBytes withheld{page.mapped};
  page.add(withheld, &queue);
  assert_true(withheld.store(kQpn, page.bytes, message.data(), Page::kRoom));
  munmap(page.bytes, Page::kRoom);
  page.mapped.forget();
  withheld.receive_completes(&queue, 5, kQpn, Page::kRoom);
  assert_false(page.is_closed());
  assert_true(withheld.polled(kQpn, 5, true).empty());
}

// A program may have data of its own behind the longest message.
void receive_completes__short_message__closes_nothing(void**) {
  Page page;
  WithheldBytes withheld{page.mapped};
  page.add(withheld, &queue);
  assert_true(withheld.store(kQpn, page.bytes, data, kSize));
  withheld.receive_completes(&queue, 5, kQpn, kSize);
  assert_false(page.is_closed());
  withheld.polled(kQpn, 5, true);
}

void polled__closed_page_written__tells_only_the_look(void**) {
  Page page;
  WithheldBytes withheld{page.mapped};
  page.add(withheld, nullptr);
  withheld.add_signaled(kQpn, 5);
  *static_cast<volatile std::byte*>(page.bytes + 3) = kProgram;
  assert_int_equal(looks, 1);
  assert_true(withheld.store(kQpn, page.bytes, data, kSize));
  assert_true(withheld.polled(kQpn, 5, false).empty());
  assert_true(page.bytes[3] == kData);
}

void forget_memory__closed_page__opens_it(void**) {
  Page page;
  WithheldBytes withheld{page.mapped};
  page.add(withheld, nullptr);
  withheld.forget_memory(page.bytes, 1);
  assert_false(page.is_closed());
}

}  // namespace

int main() {
  ClosedPages::start([](const Look&) { looks++; });
  sigaction(SIGSEGV, nullptr, &of_check);
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup(polled__receive__brings_the_bytes_that_arrived, set_up),
      cmocka_unit_test_setup(polled__filled_receive__brings_the_old_bytes_back, set_up),
      cmocka_unit_test_setup(polled__buffer_written_before_the_arrival__tells_the_place, set_up),
      cmocka_unit_test_setup(polled__buffer_written_after_the_arrival__tells_the_place, set_up),
      cmocka_unit_test_setup(polled__no_bytes_of_the_device_there__tells_nothing, set_up),
      cmocka_unit_test_setup(polled__later_request__brings_earlier_results, set_up),
      cmocka_unit_test_setup(polled__request_before_a_result__brings_nothing, set_up),
      cmocka_unit_test_setup(polled__later_completion_is_told_first__brings_bytes, set_up),
      cmocka_unit_test_setup(polled__requests_with_one_id__brings_bytes_with_the_last, set_up),
      cmocka_unit_test_setup(polled__earlier_requests_are_over__brings_bytes, set_up),
      cmocka_unit_test_setup(polled__shared_queue__brings_the_bytes_of_this_queue_pair, set_up),
      cmocka_unit_test_setup(add__bytes_of_another_request__withholds_neither, set_up),
      cmocka_unit_test_setup(overwrite__other_bytes__tells_of_the_lost_message_once, set_up),
      cmocka_unit_test_setup(overwrite__equal_bytes__tells_nothing, set_up),
      cmocka_unit_test_setup(overwrite__bytes_behind_the_message__tells_nothing, set_up),
      cmocka_unit_test_setup(overwrite__polled_message__tells_nothing, set_up),
      cmocka_unit_test_setup(overwrite__equal_ids_of_a_shared_queue__tells_nothing, set_up),
      cmocka_unit_test_setup(yield__some_of_the_bytes__brings_all_that_arrived, set_up),
      cmocka_unit_test_setup(yield_key__key_of_the_request__brings_all_that_arrived, set_up),
      cmocka_unit_test_setup(forget_memory__given_back__stays_as_it_is, set_up),
      cmocka_unit_test_setup(end__queue_pair__brings_all_that_arrived, set_up),
      cmocka_unit_test_setup(end__one_queue_pair_of_a_shared_queue__leaves_the_others, set_up),
      cmocka_unit_test_setup(add__read_of_a_page__closes_it_until_the_poll, set_up),
      cmocka_unit_test_setup(receive_completes__message_of_a_page__closes_it_until_the_poll, set_up),
      cmocka_unit_test_setup(receive_completes__memory_is_gone__closes_nothing, set_up),
      cmocka_unit_test_setup(receive_completes__short_message__closes_nothing, set_up),
      cmocka_unit_test_setup(polled__page_written_before_it_was_closed__tells_the_place, set_up),
      cmocka_unit_test_setup(polled__closed_page_written__tells_only_the_look, set_up),
      cmocka_unit_test_setup(forget_memory__closed_page__opens_it, set_up),
      cmocka_unit_test_setup(remove__refused_request__brings_the_old_bytes_back, set_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
