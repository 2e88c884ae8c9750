// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/lent_memory.hpp"

#include <string.h>

#include <memory>
#include <utility>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::BufferCopy;
using dapple::soft::check::LentMemory;
using dapple::soft::check::Loan;
using dapple::soft::check::MappedMemory;
using dapple::soft::check::PageCounts;
using dapple::soft::check::Piece;

constexpr size_t kSize = 64;
constexpr uint32_t kKey = 7, kQpn = 0x11, kOtherQpn = 0x12;
constexpr uint64_t kPosted = 1'000'000'000, kMicrosecond = 1000, kMillisecond = 1'000'000;

std::byte buffer[kSize];

Piece piece(size_t at = 0, size_t size = kSize) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer) + at;
  return {begin, begin + size, kKey};
}

MappedMemory mapped;

struct Post {
  bool is_signaled = true;
  bool has_result = false;
  uint64_t id = 0;
  uint32_t qpn = kQpn;
};

uint64_t post(LentMemory& lent, Post what = {}) {
  Loan loan;
  loan.id = what.id;
  loan.owner.qpn = what.qpn;
  loan.has_result = what.has_result;
  loan.is_signaled = what.is_signaled;
  loan.pieces = {piece()};
  const uint64_t number = lent.add(std::move(loan));
  const auto copy = std::make_shared<BufferCopy>(kSize);
  copy->put(0, buffer, kSize);
  if (!what.has_result) lent.keep(what.qpn, number, copy);
  lent.returned(what.qpn, number, kPosted);
  return number;
}

void post_without_memory(LentMemory& lent, uint64_t id) {
  const uint64_t number = lent.add_signaled(kQpn, id);
  if (number != LentMemory::kNone) lent.returned(kQpn, number, kPosted);
}

bool is_used(LentMemory& lent, uint64_t later = kMicrosecond) {
  return lent.user_of(buffer, 1, std::nullopt, kPosted + later).has_value();
}

void user_of__signaled_request__is_its_user_until_it_is_complete_for_a_while(void**) {
  LentMemory lent{mapped};
  post(lent);
  assert_true(is_used(lent));
  assert_true(is_used(lent, 5000 * kMillisecond));
  lent.completed(kQpn, 0, kPosted);
  assert_true(is_used(lent, 50 * kMillisecond));
  assert_false(is_used(lent, 200 * kMillisecond));
  assert_false(lent.user_of(buffer + kSize, 1, std::nullopt, kPosted).has_value());
}

void user_of__time_from_before_the_return__is_its_user(void**) {
  LentMemory lent{mapped};
  post(lent, {.is_signaled = false});
  assert_true(lent.user_of(buffer, 1, std::nullopt, kPosted - kMicrosecond).has_value());
}

void user_of__unsignaled_request__is_its_user_for_microseconds(void**) {
  LentMemory lent{mapped};
  post(lent, {.is_signaled = false});
  assert_true(is_used(lent));
  assert_false(is_used(lent, 20 * kMicrosecond));
}

void user_of_handle__datagram__is_its_user_until_its_completion(void**) {
  LentMemory lent{mapped};
  const int handle = 0, other_handle = 0;
  Loan loan;
  loan.owner.qpn = kQpn;
  loan.is_signaled = true;
  loan.address_handle = &handle;
  lent.returned(kQpn, lent.add(std::move(loan)), kPosted);
  assert_true(lent.user_of_handle(&handle, kPosted + kMicrosecond).has_value());
  assert_false(lent.user_of_handle(&other_handle, kPosted + kMicrosecond).has_value());
  lent.polled(kQpn, 0);
  assert_false(lent.user_of_handle(&handle, kPosted + kMicrosecond).has_value());
}

void user_of__another_key__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent);
  assert_true(lent.user_of(buffer, kSize, kKey, kPosted).has_value());
  assert_false(lent.user_of(buffer, kSize, kKey + 1, kPosted).has_value());
}

void user_of__its_completion_is_polled__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent);
  assert_int_equal(lent.polled(kQpn, 0).size(), 0);
  assert_false(is_used(lent));
}

void user_of__completion_of_an_earlier_request_is_polled__finds_it(void**) {
  LentMemory lent{mapped};
  post(lent, {.id = 1});
  post(lent, {.id = 2});
  lent.polled(kQpn, 1);
  assert_true(is_used(lent));
  lent.polled(kQpn, 2);
  assert_false(is_used(lent));
}

void user_of__completion_of_a_later_request_is_polled__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent, {.is_signaled = false, .id = 1});
  post_without_memory(lent, 2);
  lent.polled(kQpn, 2);
  assert_false(is_used(lent, 0));
}

void user_of__completion_of_another_queue_pair_is_polled__finds_it(void**) {
  LentMemory lent{mapped};
  post(lent);
  post(lent, {.qpn = kOtherQpn});
  lent.polled(kOtherQpn, 0);
  assert_true(is_used(lent));
}

void user_of__same_id_again__finds_the_later_one(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.peer_told(kPosted);
  post(lent);
  lent.polled(kQpn, 0);
  assert_true(is_used(lent));
  lent.polled(kQpn, 0);
  assert_false(is_used(lent));
}

void user_of__completion_of_a_request_without_memory__does_not_take_its_place(void**) {
  LentMemory lent{mapped};
  post(lent);
  post_without_memory(lent, 0);
  lent.forget_memory(buffer, 1);
  lent.polled(kQpn, 0);
  lent.polled(kQpn, 0);
  post(lent);
  lent.polled(kQpn, 0);
  assert_false(is_used(lent));
}

void user_of__completions_of_earlier_requests_without_memory__leave_it(void**) {
  LentMemory lent{mapped};
  for (int i = 0; i < 2; i++) post_without_memory(lent, 0);
  post(lent);
  for (int i = 0; i < 2; i++) {
    lent.polled(kQpn, 0);
    assert_true(is_used(lent));
  }
  lent.polled(kQpn, 0);
  assert_false(is_used(lent));
}

void user_of__earlier_requests_without_memory_are_over__finds_nothing(void**) {
  LentMemory lent{mapped};
  lent.remove(kQpn, lent.add_signaled(kQpn, 0), 0);
  lent.add_signaled(kOtherQpn, 0);
  lent.forget(kOtherQpn);
  post(lent, {.qpn = kOtherQpn});
  lent.polled(kOtherQpn, 0);
  assert_false(is_used(lent));
  post(lent);
  lent.polled(kQpn, 0);
  assert_false(is_used(lent));
}

// Two threads poll one completion queue, and the second one tells first.
void user_of__later_completion_is_told_first__finds_nothing(void**) {
  LentMemory lent{mapped};
  post_without_memory(lent, 1);
  post(lent, {.id = 2});
  lent.polled(kQpn, 2);
  assert_false(is_used(lent));
  post(lent, {.id = 1});
  lent.polled(kQpn, 1);
  assert_true(is_used(lent));
  lent.polled(kQpn, 1);
  assert_false(is_used(lent));
}

// The completions of a queue that ignores overruns may be dropped.
void user_of__completions_that_never_come__finds_nothing(void**) {
  LentMemory lent{mapped};
  for (size_t i = 0; i < 2 * dapple::soft::check::UnpolledIds::kMax; i++) post_without_memory(lent, i);
  post(lent, {.id = 1});
  lent.polled(kQpn, 1);
  assert_false(is_used(lent));
}

void user_of__peer_told__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent, {.id = 1});
  post(lent, {.has_result = true, .id = 2});
  lent.peer_told(kPosted);
  assert_false(is_used(lent));
}

void user_of__after_a_peers_write__finds_only_those_of_the_writer(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.written_by(kQpn);
  assert_true(is_used(lent));
  lent.written_by(kOtherQpn);
  assert_false(is_used(lent));
}

void user_of__refused_request__finds_nothing(void**) {
  LentMemory lent{mapped};
  lent.remove(kQpn, post(lent), 0);
  assert_false(is_used(lent));
}

void forget__queue_pair__forgets_its_requests(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.forget(kOtherQpn);
  assert_true(is_used(lent));
  lent.forget(kQpn);
  assert_false(is_used(lent));
}

void forget_memory__part_of_a_request__ends_its_loan(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.forget_memory(buffer + kSize, 1);
  assert_true(is_used(lent));
  lent.forget_memory(buffer + 1, 1);
  assert_false(is_used(lent));
}

void forget_key__key_of_a_request__ends_its_loan(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.forget_key(kKey + 1);
  assert_true(is_used(lent));
  lent.forget_key(kKey);
  assert_false(is_used(lent));
}

void polled__changed_buffer__gives_the_place(void**) {
  LentMemory lent{mapped};
  post(lent);
  buffer[5] ^= std::byte{1};
  const auto changed = lent.polled(kQpn, 0);
  assert_int_equal(changed.size(), 1);
  assert_int_equal(changed[0].at, 5);
}

void polled__changed_buffer_of_an_earlier_unsignaled_request__gives_it(void**) {
  LentMemory lent{mapped};
  post(lent, {.is_signaled = false, .id = 7});
  buffer[5] ^= std::byte{1};
  post(lent, {.id = 8});
  const auto changed = lent.polled(kQpn, 8, kPosted + kMicrosecond);
  assert_int_equal(changed.size(), 1);
  assert_int_equal(changed[0].loan.id, 7);
  assert_true(changed[0].is_certain);
}

void polled__changed_long_after_the_post_of_an_unsignaled_request__is_not_certain(void**) {
  LentMemory lent{mapped};
  post(lent, {.is_signaled = false, .id = 7});
  buffer[5] ^= std::byte{1};
  post(lent, {.id = 8});
  const auto changed = lent.polled(kQpn, 8, kPosted + kMillisecond);
  assert_int_equal(changed.size(), 1);
  assert_false(changed[0].is_certain);
}

void remove__full_queue__leaves_no_place(void**) {
  LentMemory lent{mapped};
  post(lent, {.id = 1});
  for (size_t i = 0; i < 2 * LentMemory::kMax; i++) lent.remove(kQpn, post(lent, {.id = 2}), 2);
  lent.completed(kQpn, 1, kPosted);
  lent.remove(kQpn, post(lent, {.id = 2}), 2);
  assert_true(is_used(lent));
  lent.polled(kQpn, 1);
  assert_false(is_used(lent));
}

void polled__changed_buffer_of_a_later_request__waits_for_its_poll(void**) {
  LentMemory lent{mapped};
  post_without_memory(lent, 1);
  post(lent, {.id = 1});
  post(lent, {.id = 2});
  buffer[5] ^= std::byte{1};
  assert_int_equal(lent.polled(kQpn, 1).size(), 0);
  assert_int_equal(lent.polled(kQpn, 1).size(), 1);
  assert_int_equal(lent.polled(kQpn, 2).size(), 1);
}

void polled__device_has_stored_there__gives_none(void**) {
  LentMemory lent{mapped};
  post(lent);
  lent.overwritten(buffer + 5, 1);
  buffer[5] ^= std::byte{1};
  assert_int_equal(lent.polled(kQpn, 0).size(), 0);
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void peer_told__changed_buffer__gives_signaled_requests(void**) {
  LentMemory lent{mapped};
  post(lent);
  post(lent, {.is_signaled = false});
  buffer[5] ^= std::byte{1};
  assert_int_equal(lent.peer_told(kPosted).size(), 1);
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void result_in__bytes_of_a_read__finds_it(void**) {
  LentMemory lent{mapped};
  post(lent);
  assert_false(lent.result_in(kQpn, {piece()}).has_value());
  post(lent, {.has_result = true});
  assert_true(lent.result_in(kQpn, {piece(kSize - 1, 1)}).has_value());
  assert_false(lent.result_in(kQpn, {piece(kSize, 1)}).has_value());
  assert_false(lent.result_in(kOtherQpn, {piece()}).has_value());
}

void add__too_many__forgets_the_oldest_of_the_queue_pair(void**) {
  LentMemory lent{mapped};
  post(lent, {.qpn = kOtherQpn});
  for (size_t i = 0; i < LentMemory::kMax; i++) post(lent, {.id = i});
  assert_true(is_used(lent));
  lent.forget(kOtherQpn);
  assert_true(is_used(lent));
  lent.polled(kQpn, LentMemory::kMax - 1);
  assert_false(is_used(lent));
}

void may_use__pieces_of_all_lengths__overlooks_none(void**) {
  constexpr uintptr_t kLong = uintptr_t{1} << 30;
  PageCounts pages;
  assert_false(pages.may_use(0, 8192));
  pages.add(100, 101);
  pages.add(kLong, 2 * kLong);
  assert_true(pages.may_use(2 * kLong - 1, 2 * kLong));
  pages.remove(kLong, 2 * kLong);
  assert_true(pages.may_use(0, 1));
  assert_false(pages.may_use(4096, 8192));
  assert_false(pages.may_use(100, 100));
  pages.remove(100, 101);
  assert_false(pages.may_use(0, 4096));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(user_of__signaled_request__is_its_user_until_it_is_complete_for_a_while),
      cmocka_unit_test(user_of__time_from_before_the_return__is_its_user),
      cmocka_unit_test(user_of__unsignaled_request__is_its_user_for_microseconds),
      cmocka_unit_test(user_of_handle__datagram__is_its_user_until_its_completion),
      cmocka_unit_test(user_of__another_key__finds_nothing),
      cmocka_unit_test(user_of__its_completion_is_polled__finds_nothing),
      cmocka_unit_test(user_of__completion_of_an_earlier_request_is_polled__finds_it),
      cmocka_unit_test(user_of__completion_of_a_later_request_is_polled__finds_nothing),
      cmocka_unit_test(user_of__completion_of_another_queue_pair_is_polled__finds_it),
      cmocka_unit_test(user_of__same_id_again__finds_the_later_one),
      cmocka_unit_test(user_of__completion_of_a_request_without_memory__does_not_take_its_place),
      cmocka_unit_test(user_of__completions_of_earlier_requests_without_memory__leave_it),
      cmocka_unit_test(user_of__earlier_requests_without_memory_are_over__finds_nothing),
      cmocka_unit_test(user_of__later_completion_is_told_first__finds_nothing),
      cmocka_unit_test(user_of__completions_that_never_come__finds_nothing),
      cmocka_unit_test(user_of__peer_told__finds_nothing),
      cmocka_unit_test(user_of__after_a_peers_write__finds_only_those_of_the_writer),
      cmocka_unit_test(user_of__refused_request__finds_nothing),
      cmocka_unit_test(forget__queue_pair__forgets_its_requests),
      cmocka_unit_test(forget_memory__part_of_a_request__ends_its_loan),
      cmocka_unit_test(forget_key__key_of_a_request__ends_its_loan),
      cmocka_unit_test(polled__changed_buffer__gives_the_place),
      cmocka_unit_test(polled__changed_buffer_of_an_earlier_unsignaled_request__gives_it),
      cmocka_unit_test(polled__changed_buffer_of_a_later_request__waits_for_its_poll),
      cmocka_unit_test(polled__changed_long_after_the_post_of_an_unsignaled_request__is_not_certain),
      cmocka_unit_test(remove__full_queue__leaves_no_place),
      cmocka_unit_test(polled__device_has_stored_there__gives_none),
      cmocka_unit_test(peer_told__changed_buffer__gives_signaled_requests),
      cmocka_unit_test(result_in__bytes_of_a_read__finds_it),
      cmocka_unit_test(add__too_many__forgets_the_oldest_of_the_queue_pair),
      cmocka_unit_test(may_use__pieces_of_all_lengths__overlooks_none),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
