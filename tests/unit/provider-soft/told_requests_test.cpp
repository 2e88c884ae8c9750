// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two programs are two objects that use one file.
#include "provider/soft/check/races/told_requests.hpp"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider/system/random.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using check::KnownRequests;
using check::ToldRequests;

constexpr uint32_t kSender = 1 << kLargeSlotBits | 5, kReceiver = 2 << kLargeSlotBits | 7;
constexpr uint32_t kFirstPsn = 0xFFFFFE;

struct Programs {
  OwnedFd file = make_counters_file();
  ToldRequests sender, receiver;

  Programs() {
    sender.open(file.get(), 1);
    receiver.open(file.get(), 2);
    sender.meet(kReceiver);
    receiver.meet(kSender);
    sender.connect({kSender, kReceiver, {}});
    receiver.connect({kReceiver, kSender, {}});
  }
};
Programs* programs = nullptr;

int begin(void**) {
  programs = new Programs;
  return programs->sender.is_open() && programs->receiver.is_open() ? 0 : 1;
}

int finish(void**) {
  delete programs;
  programs = nullptr;
  return 0;
}

KnownRequests knows(uint32_t qpn, uint64_t stamp) {
  KnownRequests known;
  known.add(qpn, stamp, stamp);
  return known;
}

bool finds(uint32_t psn, uint64_t stamp, uint64_t known) {
  const auto found = programs->receiver.request({kReceiver, kSender, {}}, psn);
  return found && found->stamp == stamp && found->known.has(9, known, known) &&
         !found->known.has(9, known + 1, known + 1);
}

void request__each_packet__is_found_around_the_circle(void**) {
  programs->sender.tell(kSender, 100, kFirstPsn, 3, knows(9, 1), 1);
  programs->sender.tell(kSender, 200, 1, 1, knows(9, 1), 1);
  programs->sender.tell(kSender, 300, 2, 1, knows(9, 7), 2);
  assert_true(finds(0xFFFFFE, 100, 1));
  assert_true(finds(0xFFFFFF, 100, 1));
  assert_true(finds(0, 100, 1));
  assert_true(finds(1, 200, 1));
  assert_true(finds(2, 300, 7));
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 3).has_value());
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0xFFFFFD).has_value());
}

void request__old_one__is_forgotten(void**) {
  for (uint32_t i = 0; i < check::kRequestRows + 10; i++) programs->sender.tell(kSender, i + 1, i, 1, knows(9, 1), 1);
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 9).has_value());
  assert_true(programs->receiver.request({kReceiver, kSender, {}}, 10).has_value());
}

void request__known_of_old_one__is_forgotten(void**) {
  programs->sender.tell(kSender, 1, 0, 1, knows(9, 1), 1);
  for (uint32_t i = 1; i <= check::kKnownRows; i++) programs->sender.tell(kSender + check::kLanes + 1, i, i, 1, {}, i);
  assert_true(finds(0, 1, 1));
  programs->sender.connect({kSender + 1, kReceiver, {}});
  for (uint32_t i = 1; i <= check::kKnownRows; i++) programs->sender.tell(kSender + 1, i, i, 1, {}, i + 1);
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
}

void request__other_connection__finds_nothing(void**) {
  programs->sender.tell(kSender, 1, 0, 1, {}, 1);
  assert_false(programs->receiver.request({kReceiver + 1, kSender, {}}, 0).has_value());
  assert_false(programs->receiver.request({kReceiver, kSender + check::kLanes, {}}, 0).has_value());
  programs->sender.disconnect(kSender);
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
  // A new connection begins with no requests.
  programs->sender.connect({kSender, kReceiver, {}});
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
}

// A queue pair of another host may have the same number, and a peer with the same number.
void request__peer_at_another_address__finds_nothing(void**) {
  Addresses here, there;
  here.source[15] = there.destination[15] = 1;
  here.destination[15] = there.source[15] = 2;
  programs->sender.locate({kSender, kReceiver, here});
  programs->sender.tell(kSender, 1, 0, 1, {}, 1);
  assert_true(programs->receiver.request({kReceiver, kSender, there}, 0).has_value());
  assert_false(programs->receiver.request({kReceiver, kSender, here}, 0).has_value());
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
}

void connect__lane_is_taken__tells_nothing(void**) {
  programs->sender.connect({kSender + check::kLanes, kReceiver, {}});
  programs->sender.tell(kSender + check::kLanes, 1, 0, 1, {}, 1);
  assert_false(programs->receiver.request({kReceiver, kSender + check::kLanes, {}}, 0).has_value());
  programs->sender.tell(kSender, 2, 0, 1, {}, 1);
  assert_true(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
}

void request__program_without_memory__finds_nothing(void**) {
  assert_false(programs->receiver.request({kReceiver, 3 << kLargeSlotBits, {}}, 0).has_value());
  assert_false(programs->receiver.request({kReceiver, 0xFFFFFF, {}}, 0).has_value());
  programs->receiver.close();
  assert_false(programs->receiver.request({kReceiver, kSender, {}}, 0).has_value());
}

void answer__newest_of_the_request__is_found(void**) {
  programs->receiver.tell_answer(kReceiver, 5, knows(9, 1));
  programs->receiver.tell_answer(kReceiver, 5, knows(9, 2));
  programs->receiver.tell_answer(kReceiver, 8, knows(9, 3));
  const auto found = programs->sender.answer({kSender, kReceiver, {}}, 4, 2);
  assert_true(found && found->has(9, 2, 2) && !found->has(9, 3, 3));
  assert_false(programs->sender.answer({kSender, kReceiver, {}}, 6, 2).has_value());
}

void races__each__is_told_once(void**) {
  uint32_t seen = 0;
  assert_true(programs->sender.races({kSender, kReceiver, {}}, seen).empty());
  for (uint64_t i = 1; i <= 3; i++) programs->receiver.tell_race(kReceiver, {i, 9, 4711});
  const auto races = programs->sender.races({kSender, kReceiver, {}}, seen);
  assert_int_equal(races.size(), 3);
  assert_int_equal(races[0].stamp, 1);
  assert_int_equal(races[2].other_process, 4711);
  assert_true(programs->sender.races({kSender, kReceiver, {}}, seen).empty());
  for (uint64_t i = 1; i <= 2 * check::kRaceRows; i++) programs->receiver.tell_race(kReceiver, {i, 9, 4711});
  assert_int_equal(programs->sender.races({kSender, kReceiver, {}}, seen).size(), check::kRaceRows);
}

void process_of__names_the_program(void**) {
  assert_int_equal(programs->receiver.process_of(kSender), getpid());
  assert_int_equal(programs->receiver.process_of(3 << kLargeSlotBits), 0);
}

// Whatever another process writes, nothing bad happens.
void request__garbage__does_no_harm(void**) {
  auto* pages = static_cast<unsigned char*>(map_races(programs->file.get(), 1));
  assert_non_null(pages);
  RandomSequence random(1);
  for (int round = 1; round <= 200; round++) {
    programs->sender.tell(kSender, 1, 0, 1000, knows(9, 1), static_cast<uint64_t>(round));
    for (int i = 0; i < 20000; i++) pages[random.next() % kSlotRacesSize] = static_cast<unsigned char>(random.next());
    // The lane keeps its name.
    programs->sender.connect({kSender, kReceiver, {}});
    programs->sender.tell(kSender, 1, 0, 1000, knows(9, 1), static_cast<uint64_t>(round));
    const auto found =
        programs->receiver.request({kReceiver, kSender, {}}, static_cast<uint32_t>(random.next()) & 0xFFFFFF);
    if (found) assert_true(found->known.count <= KnownRequests::kMax);
    uint32_t seen = static_cast<uint32_t>(random.next());
    assert_true(programs->receiver.races({kReceiver, kSender, {}}, seen).size() <= check::kRaceRows);
    (void)programs->receiver.answer({kReceiver, kSender, {}}, static_cast<uint32_t>(random.next()) & 0xFFFFFF, 1);
  }
  munmap(pages, kSlotRacesSize);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(request__each_packet__is_found_around_the_circle, begin, finish),
      cmocka_unit_test_setup_teardown(request__old_one__is_forgotten, begin, finish),
      cmocka_unit_test_setup_teardown(request__known_of_old_one__is_forgotten, begin, finish),
      cmocka_unit_test_setup_teardown(request__other_connection__finds_nothing, begin, finish),
      cmocka_unit_test_setup_teardown(request__peer_at_another_address__finds_nothing, begin, finish),
      cmocka_unit_test_setup_teardown(connect__lane_is_taken__tells_nothing, begin, finish),
      cmocka_unit_test_setup_teardown(request__program_without_memory__finds_nothing, begin, finish),
      cmocka_unit_test_setup_teardown(answer__newest_of_the_request__is_found, begin, finish),
      cmocka_unit_test_setup_teardown(races__each__is_told_once, begin, finish),
      cmocka_unit_test_setup_teardown(process_of__names_the_program, begin, finish),
      cmocka_unit_test_setup_teardown(request__garbage__does_no_harm, begin, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
