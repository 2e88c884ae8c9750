// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/posted_contexts.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::HeapInterest;
using dapple::soft::LockRank;
using dapple::soft::Mutex;
using dapple::soft::check::PostedContexts;
using dapple::soft::check::Stack;

constexpr uint32_t kQpn = 0x11, kOtherQpn = 0x12;
const int queue = 0;
char block[64];

uint64_t id_at(size_t offset) {
  return reinterpret_cast<uintptr_t>(block) + offset;
}

struct Rig {
  Mutex mutex{LockRank::kWithheldBytes};
  HeapInterest interest;
  PostedContexts contexts{mutex};

  Rig() { contexts.watch(interest); }
  uint64_t post(size_t offset, uint32_t qpn = kQpn, const void* receives = nullptr) {
    PostedContexts::Request request;
    request.receives = receives;
    request.owner.qpn = qpn;
    return contexts.add(id_at(offset), request);
  }
  void free_block() {
    if (contexts.has_context(block, sizeof block)) contexts.mark_freed(block, sizeof block, Stack());
  }
  bool finds(size_t offset, uint32_t qpn = kQpn, bool is_receive = false) {
    return contexts.polled(qpn, id_at(offset), is_receive).has_value();
  }
};

void polled__block_freed_after_the_post__finds_it_once(void**) {
  Rig rig;
  rig.post(0);
  rig.post(40);
  rig.free_block();

  assert_true(rig.finds(0));
  assert_false(rig.finds(0));
  assert_true(rig.finds(40));
}

void polled__another_queue__finds_nothing(void**) {
  Rig rig;
  rig.post(0);
  rig.free_block();

  assert_false(rig.finds(0, kOtherQpn));
  assert_false(rig.finds(0, kQpn, true));
  assert_true(rig.finds(0));
}

void polled__shared_receive_queue__finds_it_by_any_queue_pair(void**) {
  Rig rig;
  rig.post(0, 0, &queue);
  rig.free_block();

  assert_true(rig.finds(0, kOtherQpn, true));
}

void polled__address_in_use_again__finds_nothing(void**) {
  Rig rig;
  rig.post(0);
  rig.free_block();
  rig.post(0);

  assert_false(rig.finds(0));
  rig.post(0);
  rig.free_block();
  rig.contexts.forget_freed(id_at(0));
  assert_false(rig.finds(0));
}

void polled__refused_or_ended__finds_nothing(void**) {
  Rig rig;
  rig.contexts.remove(id_at(0), rig.post(0));
  rig.post(8);
  rig.post(16, 0, &queue);
  rig.free_block();
  rig.contexts.end(kQpn);
  rig.contexts.end(&queue);

  assert_false(rig.finds(0));
  assert_false(rig.finds(8));
  assert_false(rig.finds(16, kQpn, true));
}

void add__requests_come_and_go__tells_their_bounds(void**) {
  Rig rig;
  rig.post(8);
  rig.post(32);

  assert_int_equal(rig.interest.contexts_begin.load(), id_at(8));
  assert_int_equal(rig.interest.contexts_end.load(), id_at(33));
  rig.contexts.end(kQpn);
  assert_int_equal(rig.interest.contexts_end.load(), 0);
}

void add__too_many__notes_no_more(void**) {
  Rig rig;
  for (size_t i = 0; i < PostedContexts::kMax; i++) assert_int_not_equal(rig.post(0), PostedContexts::kNone);

  assert_int_equal(rig.post(0), PostedContexts::kNone);
}

void may_be_context__small_numbers__no(void**) {
  Rig rig;
  assert_false(rig.contexts.may_be_context(0));
  assert_false(rig.contexts.may_be_context(4711));
  assert_true(rig.contexts.may_be_context(id_at(0)));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(polled__block_freed_after_the_post__finds_it_once),
      cmocka_unit_test(polled__another_queue__finds_nothing),
      cmocka_unit_test(polled__shared_receive_queue__finds_it_by_any_queue_pair),
      cmocka_unit_test(polled__address_in_use_again__finds_nothing),
      cmocka_unit_test(polled__refused_or_ended__finds_nothing),
      cmocka_unit_test(add__requests_come_and_go__tells_their_bounds),
      cmocka_unit_test(add__too_many__notes_no_more),
      cmocka_unit_test(may_be_context__small_numbers__no),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
