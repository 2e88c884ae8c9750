// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/fault_plan.hpp"

#include <errno.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr auto kRegister = static_cast<size_t>(dapple::provider::Operation::reg_mr);
constexpr auto kSend = dapple::roce::CompletionOpcode::kSend;
constexpr auto kPost = static_cast<size_t>(dapple::provider::Operation::post_send);

void next_call__the_nth_call__fails_once(void**) {
  FaultPlan plan;
  assert_true(plan.add("ibv_reg_mr@2=ENOMEM"));
  assert_true(plan.plans_calls());
  assert_false(plan.plans_completions());
  assert_int_equal(plan.next_call(kRegister), 0);
  // Each verb has its own count.
  assert_int_equal(plan.next_call(kPost), 0);
  assert_int_equal(plan.next_call(kRegister), ENOMEM);
  assert_int_equal(plan.next_call(kRegister), 0);
}

void next_call__of_librdmacm__by_its_name(void**) {
  FaultPlan plan;
  assert_true(plan.add("rdma_connect@2=ECONNREFUSED"));
  assert_true(plan.plans_calls() && !plan.plans_completions());
  assert_int_equal(plan.next_call("rdma_connect"), 0);
  assert_int_equal(plan.next_call("rdma_accept"), 0);
  assert_int_equal(plan.next_call("rdma_connect"), ECONNREFUSED);
  // Nobody counts it.
  assert_int_equal(plan.next_call("rdma_get_cm_event"), 0);
  assert_false(plan.set_next("rdma_connect", ENOMEM));
}

void next_call__from_a_number_on__fails_for_ever(void**) {
  FaultPlan plan;
  assert_true(plan.add("ibv_reg_mr@2+=28"));
  assert_true(plan.add("ibv_reg_mr@1=EINTR"));
  assert_int_equal(plan.next_call(kRegister), EINTR);
  for (int i = 0; i < 5; i++) assert_int_equal(plan.next_call(kRegister), ENOSPC);
}

// No call of this test comes from there.
void next_call__of_another_place__no_failure(void**) {
  FaultPlan plan;
  assert_true(plan.add("ibv_reg_mr#c0ffee@1+=ENOMEM"));
  assert_int_equal(plan.next_call(kRegister), 0);
  assert_true(plan.add("ibv_reg_mr@2=ENOSPC"));
  assert_int_equal(plan.next_call(kRegister), ENOSPC);
}

void next_completion__of_one_opcode__others_do_not_count(void**) {
  FaultPlan plan;
  assert_true(plan.add("completion#3@2=RETRY_EXC_ERR"));
  constexpr auto kRead = dapple::roce::CompletionOpcode::kRead;
  assert_true(plan.next_completion(kRead) == dapple::roce::CompletionStatus::kSuccess);
  assert_true(plan.next_completion(kSend) == dapple::roce::CompletionStatus::kSuccess);
  assert_true(plan.next_completion(kRead) == dapple::roce::CompletionStatus::kRetryExceeded);
}

void next_event__event_by_its_name(void**) {
  FaultPlan plan;
  assert_true(plan.add("event@2=CQ_ERR"));
  assert_true(plan.plans_completions());
  assert_int_equal(plan.next_event(), -1);
  // Its number is 0.
  assert_int_equal(plan.next_event(), 0);
  assert_int_equal(plan.next_event(), -1);
}

void next_outage__with_its_completion__the_planned_time(void**) {
  FaultPlan plan;
  assert_false(plan.plans_outages());
  assert_true(plan.add("link@2=20ms"));
  assert_true(plan.plans_outages() && plan.plans_completions() && !plan.plans_calls());
  assert_false(plan.next_outage());
  assert_true(plan.next_outage());
  assert_int_equal(plan.last_outage_ns(), 20000000);
  assert_false(plan.next_outage());
}

void register_bytes__above_the_limit__refused_until_some_are_back(void**) {
  FaultPlan plan;
  assert_true(plan.register_bytes(UINT32_MAX));
  plan.unregister_bytes(UINT32_MAX);
  assert_true(plan.add("registered=100"));
  assert_true(plan.plans_calls());
  assert_true(plan.register_bytes(60));
  assert_false(plan.register_bytes(41));
  assert_true(plan.register_bytes(40));
  plan.unregister_bytes(60);
  assert_true(plan.register_bytes(60));
}

void next_completion__status_by_its_name(void**) {
  FaultPlan plan;
  assert_true(plan.add("completion@2=RETRY_EXC_ERR"));
  assert_true(plan.plans_completions());
  assert_true(plan.next_completion(kSend) == dapple::roce::CompletionStatus::kSuccess);
  assert_true(plan.next_completion(kSend) == dapple::roce::CompletionStatus::kRetryExceeded);
  assert_true(plan.next_completion(kSend) == dapple::roce::CompletionStatus::kSuccess);
}

void next_call__with_room_for_comings__each_fault_that_came(void**) {
  static FaultNotes notes;
  const FaultComing(&comings)[kMaxPlannedFaults + 1] = notes.comings;
  FaultPlan plan;
  plan.tell(&notes);
  for (const char* word : {"ibv_reg_mr@2=ENOMEM", "ibv_reg_mr@4=ENOMEM", "ibv_post_send@1=EIO", "registered=100"})
    assert_true(plan.add(word));
  for (int i = 0; i < 3; i++) plan.next_call(kRegister);
  assert_true(plan.register_bytes(60));
  assert_int_equal(comings[0].came, 1);
  assert_int_equal(comings[1].came, 0);
  assert_int_equal(comings[1].most, 3);
  assert_int_equal(comings[2].came, 0);
  assert_int_equal(comings[2].most, 0);
  assert_int_equal(comings[kMaxPlannedFaults].came, 0);
  assert_int_equal(comings[kMaxPlannedFaults].most, 60);
  assert_false(plan.register_bytes(60));
  assert_int_equal(comings[kMaxPlannedFaults].came, 1);
}

void add__malformed__false_and_no_fault(void**) {
  for (const char* text : {"",
                           "@",
                           "@=",
                           "ibv_reg_mr",
                           "ibv_reg_mr@",
                           "ibv_reg_mr@1",
                           "ibv_reg_mr@1=",
                           "ibv_reg_mr=1@1",
                           "ibv_reg_mr@0=ENOMEM",
                           "ibv_reg_mr@-1=ENOMEM",
                           "ibv_reg_mr@1-=ENOMEM",
                           "ibv_reg_mr@+=ENOMEM",
                           "ibv_reg_mr@1=ENOSUCH",
                           "ibv_reg_mr@1=0",
                           "ibv_reg_mr@1=4096",
                           "ibv_reg_mr@1=12x",
                           "reg_mr@1=ENOMEM",
                           "ibv_create_flow_action_esp@1=ENOMEM",
                           "completion@1=ENOMEM",
                           "completion@1=SUCCESS",
                           "event@1=ENOMEM",
                           "event#c0ffee@1=CQ_ERR",
                           "rdma_get_cm_event@1=ENOMEM",
                           "link@1=ENOMEM",
                           "link@1=20",
                           "link@1=0ms",
                           "link@1=11s",
                           "link#c0ffee@1=1ms",
                           "arm=",
                           "arm=0ms",
                           "registered=",
                           "registered=1k",
                           "ibv_reg_mr@99999999999999999999=ENOMEM",
                           "ibv_reg_mr@1=ENOMEM ",
                           "ibv_reg_mr#@1=ENOMEM",
                           "ibv_reg_mr#xyz@1=ENOMEM",
                           "ibv_reg_mr#0@1=ENOMEM"}) {
    FaultPlan plan;
    assert_false(plan.add(text));
    assert_false(plan.plans_calls() || plan.plans_completions());
  }
}

void add__too_many__false(void**) {
  FaultPlan plan;
  int count = 0;
  while (plan.add("ibv_reg_mr@1=ENOMEM")) {
    assert_false(plan.is_overfull());
    assert_true(++count <= 1000);
  }
  assert_int_equal(count, 64);
  assert_true(plan.is_overfull());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(next_call__the_nth_call__fails_once),
      cmocka_unit_test(next_call__of_librdmacm__by_its_name),
      cmocka_unit_test(next_call__from_a_number_on__fails_for_ever),
      cmocka_unit_test(next_call__of_another_place__no_failure),
      cmocka_unit_test(next_completion__status_by_its_name),
      cmocka_unit_test(next_completion__of_one_opcode__others_do_not_count),
      cmocka_unit_test(next_event__event_by_its_name),
      cmocka_unit_test(next_outage__with_its_completion__the_planned_time),
      cmocka_unit_test(register_bytes__above_the_limit__refused_until_some_are_back),
      cmocka_unit_test(next_call__with_room_for_comings__each_fault_that_came),
      cmocka_unit_test(add__malformed__false_and_no_fault),
      cmocka_unit_test(add__too_many__false),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
