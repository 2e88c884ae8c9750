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
using dapple::soft::check::Piece;

constexpr size_t kSize = 64;
constexpr uint32_t kKey = 7, kQpn = 0x11;
constexpr uint64_t kPosted = 1'000'000'000, kMicrosecond = 1000, kMillisecond = 1'000'000;

std::byte buffer[kSize];
const int queue_pair = 0, other_queue_pair = 0;

Piece piece(size_t at = 0, size_t size = kSize) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer) + at;
  return {begin, begin + size, kKey};
}

MappedMemory mapped;

uint64_t post(LentMemory& lent, bool is_signaled, bool has_result = false) {
  Loan loan;
  loan.queue_pair = &queue_pair;
  loan.owner.qpn = kQpn;
  loan.has_result = has_result;
  loan.is_signaled = is_signaled;
  loan.pieces = {piece()};
  const uint64_t number = lent.add(std::move(loan));
  const auto copy = std::make_shared<BufferCopy>(kSize);
  copy->put(0, buffer, kSize);
  if (!has_result) lent.keep(number, copy);
  lent.returned(number, kPosted);
  return number;
}

bool is_used(LentMemory& lent, uint64_t later = kMicrosecond) {
  return lent.user_of(buffer, 1, std::nullopt, kPosted + later).has_value();
}

void user_of__signaled_request__is_its_user_for_a_while(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  assert_true(is_used(lent));
  assert_true(is_used(lent, 50 * kMillisecond));
  assert_false(is_used(lent, 200 * kMillisecond));
  assert_false(lent.user_of(buffer + kSize, 1, std::nullopt, kPosted).has_value());
}

void user_of__time_from_before_the_return__is_its_user(void**) {
  LentMemory lent{mapped};
  post(lent, false);
  assert_true(lent.user_of(buffer, 1, std::nullopt, kPosted - kMicrosecond).has_value());
}

void user_of__unsignaled_request__is_its_user_for_microseconds(void**) {
  LentMemory lent{mapped};
  post(lent, false);
  assert_true(is_used(lent));
  assert_false(is_used(lent, 20 * kMicrosecond));
}

void user_of_handle__datagram__is_its_user_until_a_completion(void**) {
  LentMemory lent{mapped};
  const int handle = 0, other_handle = 0;
  Loan loan;
  loan.is_signaled = true;
  loan.address_handle = &handle;
  lent.returned(lent.add(std::move(loan)), kPosted);
  assert_true(lent.user_of_handle(&handle, kPosted + kMicrosecond).has_value());
  assert_false(lent.user_of_handle(&other_handle, kPosted + kMicrosecond).has_value());
  lent.end_all(kPosted + kMicrosecond);
  assert_false(lent.user_of_handle(&handle, kPosted + kMicrosecond).has_value());
}

void user_of__another_key__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  assert_true(lent.user_of(buffer, kSize, kKey, kPosted).has_value());
  assert_false(lent.user_of(buffer, kSize, kKey + 1, kPosted).has_value());
}

void user_of__after_a_completion__finds_nothing(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  assert_int_equal(lent.end_all(kPosted).size(), 0);
  assert_false(is_used(lent));
}

void user_of__after_a_peers_write__finds_only_those_of_the_writer(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  lent.written_by(kQpn);
  assert_true(is_used(lent));
  lent.written_by(kQpn + 1);
  assert_false(is_used(lent));
}

void user_of__refused_request__finds_nothing(void**) {
  LentMemory lent{mapped};
  lent.remove(post(lent, true));
  assert_false(is_used(lent));
}

void forget__queue_pair__forgets_its_requests(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  lent.forget(&other_queue_pair);
  assert_true(is_used(lent));
  lent.forget(&queue_pair);
  assert_false(is_used(lent));
}

void forget_memory__part_of_a_request__forgets_the_request(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  lent.forget_memory(buffer + kSize, 1);
  assert_true(is_used(lent));
  lent.forget_memory(buffer + 1, 1);
  assert_false(is_used(lent));
}

void end_all__changed_buffer__gives_the_place(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  buffer[5] ^= std::byte{1};
  const auto changed = lent.end_all(kPosted);
  assert_int_equal(changed.size(), 1);
  assert_int_equal(changed[0].at, 5);
}

void end_all__changed_buffer_of_unsignaled_request__gives_none(void**) {
  LentMemory lent{mapped};
  post(lent, false);
  buffer[5] ^= std::byte{1};
  assert_int_equal(lent.end_all(kPosted).size(), 0);
}

void end_all__device_has_stored_there__gives_none(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  lent.overwritten(buffer + 5, 1);
  buffer[5] ^= std::byte{1};
  assert_int_equal(lent.end_all(kPosted).size(), 0);
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void result_in__bytes_of_a_read__finds_it(void**) {
  LentMemory lent{mapped};
  post(lent, true);
  assert_false(lent.result_in(&queue_pair, {piece()}).has_value());
  post(lent, true, true);
  assert_true(lent.result_in(&queue_pair, {piece(kSize - 1, 1)}).has_value());
  assert_false(lent.result_in(&queue_pair, {piece(kSize, 1)}).has_value());
  assert_false(lent.result_in(&other_queue_pair, {piece()}).has_value());
}

void add__too_many__forgets_the_oldest(void**) {
  LentMemory lent{mapped};
  const uint64_t first = post(lent, true, true);
  for (size_t i = 0; i < LentMemory::kMax; i++) {
    Loan loan;
    loan.queue_pair = &other_queue_pair;
    lent.add(std::move(loan));
  }
  assert_int_equal(first, 0);
  assert_false(is_used(lent));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(user_of__signaled_request__is_its_user_for_a_while),
      cmocka_unit_test(user_of__time_from_before_the_return__is_its_user),
      cmocka_unit_test(user_of__unsignaled_request__is_its_user_for_microseconds),
      cmocka_unit_test(user_of_handle__datagram__is_its_user_until_a_completion),
      cmocka_unit_test(user_of__another_key__finds_nothing),
      cmocka_unit_test(user_of__after_a_completion__finds_nothing),
      cmocka_unit_test(user_of__after_a_peers_write__finds_only_those_of_the_writer),
      cmocka_unit_test(user_of__refused_request__finds_nothing),
      cmocka_unit_test(forget__queue_pair__forgets_its_requests),
      cmocka_unit_test(forget_memory__part_of_a_request__forgets_the_request),
      cmocka_unit_test(end_all__changed_buffer__gives_the_place),
      cmocka_unit_test(end_all__changed_buffer_of_unsignaled_request__gives_none),
      cmocka_unit_test(end_all__device_has_stored_there__gives_none),
      cmocka_unit_test(result_in__bytes_of_a_read__finds_it),
      cmocka_unit_test(add__too_many__forgets_the_oldest),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
