// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/event_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint64_t kDying = 0x7001, kOther = 0x7002, kThird = 0x7003;

struct Rig {
  EventPipes pipes;
  int reader = -1;
  int writer = -1;
  EventCount dying, other;
};

// The number of the event is its second word.
struct Message {
  uint64_t object;
  uint64_t number;
};

int make_rig(void** state) {
  auto* rig = new Rig;
  *state = rig;
  int ends[2];
  if (!rig->pipes.ready() || pipe2(ends, O_CLOEXEC) != 0) return -1;
  rig->reader = ends[0];
  rig->writer = ends[1];
  return fcntl(rig->writer, F_SETFL, O_NONBLOCK);
}

int drop_rig(void** state) {
  auto* rig = static_cast<Rig*>(*state);
  close(rig->reader);
  rig->pipes.close(rig->writer);
  delete rig;
  return 0;
}

Message next(const Rig& rig, size_t size = sizeof(Message)) {
  Message message = {};
  fcntl(rig.reader, F_SETFL, O_NONBLOCK);
  assert_int_equal(read(rig.reader, &message, size), size);
  return message;
}

void assert_empty(const Rig& rig) {
  char byte;
  fcntl(rig.reader, F_SETFL, O_NONBLOCK);
  assert_int_equal(read(rig.reader, &byte, 1), -1);
}

void remove__events_of_other_objects__stay_in_order(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  constexpr uint64_t kEvents = 200;
  for (uint64_t i = 0; i < kEvents; i++) {
    const Message message = {i % 3 == 0 ? kDying : i % 3 == 1 ? kOther : kThird, i};
    rig.pipes.write(rig.writer, &message, sizeof message, i % 3 == 0 ? rig.dying : rig.other);
  }
  const uint32_t others = rig.other.written;
  rig.pipes.remove(rig.reader, rig.writer, sizeof(Message), kDying, rig.dying);
  assert_int_equal(rig.dying.written, 0);
  assert_int_equal(rig.other.written, others);
  for (uint64_t i = 0; i < kEvents; i++) {
    if (i % 3 == 0) continue;
    const Message message = next(rig);
    assert_int_equal(message.number, i);
    assert_int_equal(message.object, i % 3 == 1 ? kOther : kThird);
  }
  assert_empty(rig);
}

// The object's destruction waits until the program has acknowledged these.
void remove__events_that_were_read__still_count(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  for (uint64_t i = 0; i < 3; i++) rig.pipes.write(rig.writer, &kDying, sizeof kDying, rig.dying);
  assert_int_equal(next(rig, sizeof kDying).object, kDying);
  rig.pipes.remove(rig.reader, rig.writer, sizeof kDying, kDying, rig.dying);
  assert_int_equal(rig.dying.written, 1);
  assert_empty(rig);
}

// Programs may have one channel for all completion queues of thousands of connections.
void write__many_unread_events__loses_none(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  constexpr uint32_t kEvents = 100'000;
  for (uint64_t i = 0; i < kEvents; i++) {
    const uint64_t object = kOther + i;
    if (i == kEvents / 2) rig.pipes.write(rig.writer, &kDying, sizeof kDying, rig.dying);
    rig.pipes.write(rig.writer, &object, sizeof object, rig.other);
  }
  assert_int_equal(rig.dying.written, 1);
  assert_int_equal(rig.other.written, kEvents);
  rig.pipes.remove(rig.reader, rig.writer, sizeof kDying, kDying, rig.dying);
  for (uint64_t i = 0; i < kEvents; i++) assert_int_equal(next(rig, sizeof kOther).object, kOther + i);
  assert_empty(rig);
}

void remove__full_pipe__loses_no_other_event(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  rig.pipes.write(rig.writer, &kDying, sizeof kDying, rig.dying);
  // Until one has no room, and is lost. Each names another object.
  uint32_t before;
  do {
    before = rig.other.written;
    const uint64_t object = kOther + before;
    rig.pipes.write(rig.writer, &object, sizeof object, rig.other);
  } while (rig.other.written != before);
  assert_true(before > 0);
  rig.pipes.remove(rig.reader, rig.writer, sizeof kDying, kDying, rig.dying);
  assert_int_equal(rig.dying.written, 0);
  for (uint32_t i = 0; i < before; i++) assert_int_equal(next(rig, sizeof kOther).object, kOther + i);
  assert_empty(rig);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(remove__events_of_other_objects__stay_in_order, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(remove__events_that_were_read__still_count, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(write__many_unread_events__loses_none, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(remove__full_pipe__loses_no_other_event, make_rig, drop_rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
