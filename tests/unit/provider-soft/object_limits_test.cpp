// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The limits of a device: kept by threads that make and destroy objects at the same time, and shared by the device's
// contexts.
#include "provider/soft/objects/object_limits.hpp"

#include <pthread.h>

#include <atomic>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr ObjectKind kKind = ObjectKind::kCq;

void take__at_the_limit__empty_until_an_object_goes(void**) {
  DeviceObjects device;
  ContextObjects context;
  context.join(device);
  static CountedObject objects[most_objects(kKind)];
  for (CountedObject& object : objects) {
    object = context.take(kKind);
    assert_true(static_cast<bool>(object));
  }
  assert_false(static_cast<bool>(context.take(kKind)));
  // Other kinds have limits of their own.
  assert_true(static_cast<bool>(context.take(ObjectKind::kSrq)));
  objects[7] = CountedObject();
  objects[8] = context.take(kKind);
  assert_int_equal(device.count(kKind), most_objects(kKind) - 1);
  objects[7] = context.take(kKind);
  assert_true(static_cast<bool>(objects[7]));
  assert_false(static_cast<bool>(context.take(kKind)));
  for (CountedObject& object : objects) object = CountedObject();
  assert_int_equal(device.count(kKind), 0);
  context.leave();
}

// Another thread destroys an object while its context leaves.
void give__after_the_context_has_left__counts_once(void**) {
  DeviceObjects device;
  ContextObjects closed, open;
  closed.join(device);
  open.join(device);
  CountedObject object = closed.take(kKind);
  closed.leave();
  assert_int_equal(device.count(kKind), 0);
  object = CountedObject();
  assert_int_equal(device.count(kKind), 0);
  assert_true(static_cast<bool>(open.take(kKind)));
  open.leave();
}

void take__limits_of_an_identity__are_lower(void**) {
  DeviceAttributes limits;
  limits.max_cq = 2;
  limits.max_srq = 0;
  DeviceObjects device(limits);
  ContextObjects context;
  context.join(device);
  static CountedObject one, other;
  one = context.take(ObjectKind::kCq);
  other = context.take(ObjectKind::kCq);
  assert_true(static_cast<bool>(one) && static_cast<bool>(other));
  assert_false(static_cast<bool>(context.take(ObjectKind::kCq)));
  assert_false(static_cast<bool>(context.take(ObjectKind::kSrq)));
  assert_true(static_cast<bool>(context.take(ObjectKind::kPd)));
  one = CountedObject();
  other = CountedObject();
  context.leave();
}

void contexts__of_one_device__share_the_limit(void**) {
  DeviceObjects device;
  ContextObjects one, other;
  one.join(device);
  other.join(device);
  static CountedObject objects[most_objects(kKind)];
  for (uint32_t i = 0; i < most_objects(kKind); ++i) objects[i] = (i % 2 == 0 ? one : other).take(kKind);
  assert_false(static_cast<bool>(one.take(kKind)));
  assert_false(static_cast<bool>(other.take(kKind)));
  // A context that ends takes along what the program has left in it.
  assert_int_equal(other.leave().contexts(), 1);
  assert_int_equal(device.count(kKind), most_objects(kKind) / 2);
  for (CountedObject& object : objects) object = CountedObject();
  assert_int_equal(device.count(kKind), 0);
  assert_int_equal(one.leave().contexts(), 0);
}

struct Race {
  ContextObjects context;
  std::atomic<uint32_t> alive{0};
  std::atomic<uint32_t> most{0};
  std::atomic<uint32_t> refused_too_early{0};
};

// Each thread has one object at a time, so as many fit as the test leaves room for.
void* make_and_destroy(void* argument) {
  Race& race = *static_cast<Race*>(argument);
  for (int i = 0; i < 100000; ++i) {
    const CountedObject object = race.context.take(kKind);
    if (!object) {
      race.refused_too_early++;
      continue;
    }
    const uint32_t alive = race.alive.fetch_add(1) + 1;
    for (uint32_t most = race.most; most < alive && !race.most.compare_exchange_weak(most, alive);) continue;
    race.alive.fetch_sub(1);
  }
  return nullptr;
}

void race(uint32_t room, uint32_t threads, uint32_t& most, uint32_t& refused) {
  DeviceObjects device;
  static Race race;
  race.most = race.refused_too_early = 0;
  race.context.join(device);
  static CountedObject others[most_objects(kKind)];
  for (uint32_t i = 0; i < most_objects(kKind) - room; ++i) others[i] = race.context.take(kKind);
  pthread_t made[4];
  for (uint32_t i = 0; i < threads; ++i) pthread_create(&made[i], nullptr, make_and_destroy, &race);
  for (uint32_t i = 0; i < threads; ++i) pthread_join(made[i], nullptr);
  most = race.most;
  refused = race.refused_too_early;
  for (CountedObject& object : others) object = CountedObject();
  race.context.leave();
}

void threads__with_room_for_all__none_is_refused(void**) {
  uint32_t most = 0, refused = 0;
  race(4, 4, most, refused);
  assert_int_equal(refused, 0);
}

void threads__with_room_for_two__never_have_more(void**) {
  uint32_t most = 0, refused = 0;
  race(2, 4, most, refused);
  assert_true(most >= 1 && most <= 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__at_the_limit__empty_until_an_object_goes),
      cmocka_unit_test(give__after_the_context_has_left__counts_once),
      cmocka_unit_test(take__limits_of_an_identity__are_lower),
      cmocka_unit_test(contexts__of_one_device__share_the_limit),
      cmocka_unit_test(threads__with_room_for_all__none_is_refused),
      cmocka_unit_test(threads__with_room_for_two__never_have_more),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
