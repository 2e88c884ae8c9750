// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_list.hpp"

#include <errno.h>

#include <mutex>

#include "provider/soft/tag_matching/operation_queue.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

// A list with the lock held.
struct Locked {
  explicit Locked(uint32_t tags) {
    assert_int_equal(list.initialize(tags), 0);
    list.mutex.lock();
  }
  ~Locked() { list.mutex.unlock(); }

  uint32_t add(uint64_t id, uint64_t tag, uint64_t mask = UINT64_MAX) {
    return list.add({.id = id, .tag = tag, .mask = mask, .segments = {}});
  }
  // The id of the entry that a message with this tag takes; 0: none.
  uint64_t take(uint64_t tag) {
    const uint32_t found = list.find(tag);
    if (found == TagList::kNone) return 0;
    list.take(found);
    return list.id_of(found);
  }

  TagList list;
};

void initialize__beyond_the_limits__fails(void**) {
  TagList list;
  assert_int_equal(list.initialize(0), EINVAL);
  assert_int_equal(list.initialize(kMaxTags + 1), EINVAL);
  assert_int_equal(list.initialize(kMaxTags), 0);
}

void find__the_oldest_that_matches(void**) {
  Locked one(8);
  one.add(1, 0x10, 0xF0);
  one.add(2, 0x12);
  one.add(3, 0, 0);
  assert_int_equal(one.take(0x12), 1);
  assert_int_equal(one.take(0x12), 2);
  assert_int_equal(one.take(0x12), 3);
  assert_int_equal(one.take(0x12), 0);
}

void find__a_tag_with_bits_outside_of_its_mask__matches_nothing(void**) {
  Locked one(2);
  one.add(1, 0x11, 0x0F);
  assert_int_equal(one.take(0x11), 0);
  assert_int_equal(one.take(0x01), 0);
}

void take__keeps_the_place_until_release(void**) {
  Locked one(2);
  one.add(1, 1);
  one.add(2, 2);
  assert_true(one.list.is_full());
  const uint32_t first = one.list.find(1);
  one.list.take(first);
  assert_true(one.list.is_full());
  one.list.release(first);
  assert_false(one.list.is_full());
  one.add(3, 3);
  assert_true(one.list.is_full());
  assert_int_equal(one.take(2), 2);
  assert_int_equal(one.take(3), 3);
}

void remove__only_an_entry_that_waits(void**) {
  Locked one(3);
  const uint32_t first = one.add(1, 1);
  const uint32_t second = one.add(2, 2);
  assert_true(one.list.is_handle(first) && !one.list.is_handle(3) && !one.list.is_handle(UINT32_MAX));
  const uint32_t taken = one.list.find(2);
  one.list.take(taken);
  assert_false(one.list.remove(second));
  one.list.release(taken);
  assert_false(one.list.remove(second));
  assert_true(one.list.remove(first));
  assert_false(one.list.remove(first));
  assert_int_equal(one.take(1), 0);
  // A later entry in the same place has another handle.
  for (uint64_t id = 10; id < 13; ++id) {
    const uint32_t handle = one.add(id, id);
    assert_true(handle != first && handle != second);
  }
  assert_false(one.list.remove(first));
  assert_false(one.list.remove(second));
  assert_int_equal(one.take(11), 11);
}

void sync__new_tags_wait_until_the_counts_agree(void**) {
  Locked one(4);
  one.add(1, 1);
  one.list.count_unexpected();
  assert_false(one.list.is_in_step());
  one.add(2, 2);
  assert_int_equal(one.take(2), 0);
  assert_int_equal(one.take(1), 1);
  one.list.tell_read(2);
  assert_int_equal(one.take(2), 0);
  one.list.tell_read(1);
  assert_true(one.list.is_in_step());
  assert_int_equal(one.take(2), 2);
  one.add(3, 3);
  assert_int_equal(one.take(3), 3);
}

void sync__an_entry_in_effect_stays_so(void**) {
  Locked one(4);
  one.list.count_unexpected();
  one.add(1, 1);
  one.list.tell_read(1);
  one.list.count_unexpected();
  one.add(2, 2);
  assert_int_equal(one.take(1), 1);
  assert_int_equal(one.take(2), 0);
}

// As the 16 bits of a NIC.
void sync__counts_wrap(void**) {
  Locked one(4);
  for (uint32_t i = 0; i < (1 << 16) + 3; ++i) one.list.count_unexpected();
  one.list.tell_read(3);
  assert_true(one.list.is_in_step());
  one.list.tell_read((1 << 16) + 3);
  assert_true(one.list.is_in_step());
  for (uint32_t i = 0; i < 0x3FFF; ++i) one.list.count_unexpected();
  assert_false(one.list.is_far_behind());
  one.list.count_unexpected();
  assert_true(one.list.is_far_behind());
}

void add__all_places_in_turns(void**) {
  Locked one(kMaxTags);
  for (uint32_t round = 0; round < 1000; ++round) {
    while (!one.list.is_full()) one.add(round + 1, round % 7);
    const uint32_t found = one.list.find(round % 7);
    if (found == TagList::kNone) continue;
    one.list.take(found);
    one.list.release(found);
  }
}

void segments__are_copied(void**) {
  Locked one(2);
  roce::Segment segments[] = {{100, 10, 1}, {200, 20, 2}};
  one.list.add({.id = 5, .tag = 1, .mask = 1, .segments = segments, .mark = 7});
  segments[1].length = 0;
  const uint32_t found = one.list.find(1);
  one.list.take(found);
  assert_int_equal(one.list.segments_of(found).size(), 2);
  assert_int_equal(one.list.segments_of(found)[1].length, 20);
  assert_int_equal(one.list.mark_of(found), 7);
}

// --- The operations that the program has not heard of

void operations__without_completions__fill_the_queue(void**) {
  CompletionQueue queue;
  OperationQueue operations;
  assert_int_equal(queue.initialize(8), 0);
  assert_int_equal(operations.initialize(0), EINVAL);
  assert_int_equal(operations.initialize(kMaxTagOperations + 1), EINVAL);
  assert_int_equal(operations.initialize(3), 0);
  for (int i = 0; i < 3; ++i) {
    assert_true(operations.has_room(queue));
    operations.add(queue, false);
  }
  assert_false(operations.has_room(queue));
}

void operations__a_poll_ends_those_before(void**) {
  CompletionQueue queue;
  OperationQueue operations;
  roce::Completion taken;
  assert_int_equal(queue.initialize(8), 0);
  assert_int_equal(operations.initialize(3), 0);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3; ++i) {
      assert_true(operations.has_room(queue));
      if (i == 1) queue.complete({});
      operations.add(queue, i == 1);
    }
    assert_false(operations.has_room(queue));
    queue.complete({});  // another one, which stays
    assert_int_equal(queue.take(&taken, 1), 1);
    assert_true(operations.has_room(queue));
    operations.add(queue, false);
    operations.add(queue, false);
    assert_false(operations.has_room(queue));
    queue.complete({});
    while (queue.take(&taken, 1) != 0) continue;
    // Nothing tells the program of the last ones.
    assert_false(operations.has_room(queue));
    operations = OperationQueue();
    assert_int_equal(operations.initialize(3), 0);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(initialize__beyond_the_limits__fails),
      cmocka_unit_test(find__the_oldest_that_matches),
      cmocka_unit_test(find__a_tag_with_bits_outside_of_its_mask__matches_nothing),
      cmocka_unit_test(take__keeps_the_place_until_release),
      cmocka_unit_test(remove__only_an_entry_that_waits),
      cmocka_unit_test(sync__new_tags_wait_until_the_counts_agree),
      cmocka_unit_test(sync__an_entry_in_effect_stays_so),
      cmocka_unit_test(sync__counts_wrap),
      cmocka_unit_test(add__all_places_in_turns),
      cmocka_unit_test(segments__are_copied),
      cmocka_unit_test(operations__without_completions__fill_the_queue),
      cmocka_unit_test(operations__a_poll_ends_those_before),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
