// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/posted_sends.hpp"

#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::roce::Segment;
using dapple::soft::check::BufferCopy;
using dapple::soft::check::PostedSend;
using dapple::soft::check::PostedSends;
using dapple::soft::check::SharedCopy;

constexpr size_t kSize = 8;

std::byte buffer[kSize];

Segment segment() {
  return {reinterpret_cast<uintptr_t>(buffer), kSize, 5};
}

SharedCopy copy_of_buffer() {
  const auto copy = std::make_shared<BufferCopy>(kSize);
  copy->put(0, buffer, kSize);
  return copy;
}

uint64_t begin_post(PostedSends& sends) {
  PostedSend send;
  send.segments = {segment()};
  send.copy = copy_of_buffer();
  return sends.add(std::move(send));
}

// The device takes the request.
uint64_t post(PostedSends& sends) {
  const uint64_t number = begin_post(sends);
  sends.was_taken();
  return number;
}

void fill(int value) {
  memset(buffer, value, kSize);
}

// The place of the first changed byte, or -1.
int taken(PostedSends& sends, uint64_t offset, size_t size) {
  const Segment one[] = {segment()};
  const auto changed = sends.take(one, offset, buffer + offset, size);
  return changed ? static_cast<int>(changed->at) : -1;
}

bool waits(PostedSends& sends, uint64_t offset) {
  const Segment one[] = {segment()};
  return sends.waiting(one, offset).has_value();
}

void take__unchanged_buffer__finds_nothing(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  assert_int_equal(taken(sends, 0, 4), -1);
  assert_int_equal(taken(sends, 4, 4), -1);
}

void take__changed_byte__finds_its_place(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  buffer[6] = std::byte{2};
  assert_int_equal(taken(sends, 0, 4), -1);
  assert_int_equal(taken(sends, 4, 4), 6);
}

void take__sent_again__is_not_compared(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  assert_int_equal(taken(sends, 0, kSize), -1);
  fill(2);
  assert_false(waits(sends, 0));
  assert_int_equal(taken(sends, 0, kSize), -1);
}

void take__two_requests_of_one_buffer__compares_each_with_its_post(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  assert_int_equal(taken(sends, 0, kSize), -1);
  fill(2);
  post(sends);
  assert_int_equal(taken(sends, 0, kSize), -1);
}

void overwritten__by_the_device__drops_the_copy(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  fill(2);
  sends.overwritten(buffer + 7, 1);
  assert_int_equal(taken(sends, 0, kSize), -1);
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void keep__the_device_stores_while_the_copy_is_made__drops_the_copy(void**) {
  PostedSends sends(4);
  PostedSend send;
  send.segments = {segment()};
  const uint64_t number = sends.add(std::move(send));
  fill(1);
  sends.overwritten(buffer + 7, 1);
  sends.keep(number, copy_of_buffer());
  fill(2);
  assert_int_equal(taken(sends, 0, kSize), -1);
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void keep__changed_byte__finds_its_place(void**) {
  PostedSends sends(4);
  PostedSend send;
  send.segments = {segment()};
  const uint64_t number = sends.add(std::move(send));
  fill(1);
  sends.keep(number, copy_of_buffer());
  buffer[3] = std::byte{2};
  assert_int_equal(taken(sends, 0, kSize), 3);
}

void overwritten__beside_the_buffer__keeps_the_copy(void**) {
  PostedSends sends(4);
  fill(1);
  post(sends);
  fill(2);
  sends.overwritten(buffer + kSize, 1);
  assert_int_equal(taken(sends, 0, kSize), 0);
}

void remove__refused_request__waits_no_more(void**) {
  PostedSends sends(4);
  fill(1);
  const uint64_t number = begin_post(sends);
  assert_true(waits(sends, 0));
  sends.remove(number);
  assert_false(waits(sends, 0));
  assert_int_equal(BufferCopy::all_bytes.load(), 0);
}

void was_taken__more_than_the_depth__forgets_the_oldest(void**) {
  PostedSends sends(1);
  fill(1);
  post(sends);
  fill(2);
  post(sends);
  assert_int_equal(BufferCopy::all_bytes.load(), kSize);
  assert_int_equal(taken(sends, 0, kSize), -1);
  assert_false(waits(sends, 0));
}

// A program may post to a full queue, and try again later.
void remove__queue_is_full__keeps_the_oldest(void**) {
  PostedSends sends(1);
  fill(1);
  post(sends);
  fill(2);
  sends.remove(begin_post(sends));
  assert_true(waits(sends, 0));
  assert_int_equal(taken(sends, 0, kSize), 0);
}

constexpr uint32_t kQpn = 17;

void add_in_error__after_polled_flushes__is_noticed(void**) {
  PostedSends sends(4);
  for (unsigned i = 0; i < PostedSends::kFlushesToNotice; i++) {
    assert_false(sends.add_in_error(kQpn, 1));
    sends.polled_flush(kQpn, 1);
  }
  assert_true(sends.add_in_error(kQpn, 1));
  sends.clear();
  assert_false(sends.add_in_error(kQpn, 1));
}

void add_in_error__after_one_flush__is_a_program_that_drains(void**) {
  PostedSends sends(4);
  assert_false(sends.add_in_error(kQpn, 1));
  sends.polled_flush(kQpn, 1);
  sends.polled_flush(kQpn, 1);
  assert_false(sends.add_in_error(kQpn, 2));
}

void add_in_error__flushes_of_older_requests__do_not_count(void**) {
  PostedSends sends(4);
  for (uint64_t id = 1; id <= 3; id++) sends.polled_flush(kQpn, id);
  assert_false(sends.add_in_error(kQpn, 4));
  for (uint64_t id = 5; id <= 7; id++) sends.polled_flush(kQpn, id);
  sends.polled_flush(kQpn + 1, 4);
  assert_false(sends.add_in_error(kQpn, 8));
}

// A pipeline of two requests, of which one poll brings the flushes, and then the drain.
void add_in_error__requests_before_the_first_flush__count_once(void**) {
  PostedSends sends(8);
  for (uint64_t id = 1; id <= 4; id++) assert_false(sends.add_in_error(kQpn, id));
  for (uint64_t id = 1; id <= 4; id++) sends.polled_flush(kQpn, id);
  assert_false(sends.add_in_error(kQpn, 5));
  sends.polled_flush(kQpn, 5);
  assert_true(sends.add_in_error(kQpn, 6));
}

void* poll_flushes(void* sends) {
  for (unsigned i = 0; i < PostedSends::kFlushesToNotice; i++) static_cast<PostedSends*>(sends)->polled_flush(kQpn, i);
  return nullptr;
}

void add_in_error__flushes_polled_by_another_thread__do_not_count(void**) {
  PostedSends sends(4);
  for (unsigned i = 0; i < PostedSends::kFlushesToNotice; i++) sends.add_in_error(kQpn, i);
  pthread_t other;
  assert_int_equal(pthread_create(&other, nullptr, poll_flushes, &sends), 0);
  pthread_join(other, nullptr);
  assert_false(sends.add_in_error(kQpn, 3));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__unchanged_buffer__finds_nothing),
      cmocka_unit_test(take__changed_byte__finds_its_place),
      cmocka_unit_test(take__sent_again__is_not_compared),
      cmocka_unit_test(take__two_requests_of_one_buffer__compares_each_with_its_post),
      cmocka_unit_test(overwritten__by_the_device__drops_the_copy),
      cmocka_unit_test(keep__the_device_stores_while_the_copy_is_made__drops_the_copy),
      cmocka_unit_test(keep__changed_byte__finds_its_place),
      cmocka_unit_test(overwritten__beside_the_buffer__keeps_the_copy),
      cmocka_unit_test(remove__refused_request__waits_no_more),
      cmocka_unit_test(add_in_error__after_polled_flushes__is_noticed),
      cmocka_unit_test(add_in_error__after_one_flush__is_a_program_that_drains),
      cmocka_unit_test(add_in_error__flushes_of_older_requests__do_not_count),
      cmocka_unit_test(add_in_error__requests_before_the_first_flush__count_once),
      cmocka_unit_test(add_in_error__flushes_polled_by_another_thread__do_not_count),
      cmocka_unit_test(was_taken__more_than_the_depth__forgets_the_oldest),
      cmocka_unit_test(remove__queue_is_full__keeps_the_oldest),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
