// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/faults/disturbances.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "provider/common/settings.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/system/random.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

void parse__all_settings__are_read(void**) {
  FaultSettings settings;
  Problem problem;
  assert_true(
      parse_faults("drop=0.01,delay=1.5ms,dup=1,reorder=0,corrupt=1e-3,seed=18446744073709551615", settings, problem));
  assert_true(settings.drop == 0.01 && settings.duplicate == 1 && settings.reorder == 0 && settings.corrupt == 1e-3);
  assert_true(settings.delay_ns == 1500000 && settings.seed == UINT64_MAX);
  assert_true(parse_faults("delay=10s", settings, problem));
  assert_true(settings.delay_ns == 10000000000 && settings.drop == 0);
  assert_false(settings.disorders_writes);
  assert_true(parse_faults("order=random", settings, problem));
  assert_true(settings.disorders_writes && !settings.disturbs_packets());
  assert_false(wants_weak_order("order=random"));
  assert_true(parse_faults("order=random,order=weak", settings, problem));
  assert_true(!settings.disorders_writes && !settings.disturbs_packets());
  assert_true(wants_weak_order("order=random,order=weak,drop=0") && wants_weak_order("order=weak"));
  assert_false(wants_weak_order("order=weak,order=random") || wants_weak_order("drop=0"));
}

int without_seed(void**) {
  unsetenv("DAPPLE_SEED");
  provider::read_settings_again();
  return 0;
}

void parse__seed__the_plans_before_the_process(void**) {
  FaultSettings settings;
  Problem problem;
  assert_true(parse_faults("drop=0.1", settings, problem));
  assert_int_equal(settings.seed, 1);
  setenv("DAPPLE_SEED", "12", 1);
  provider::read_settings_again();
  assert_true(parse_faults("drop=0.1", settings, problem));
  assert_int_equal(settings.seed, 12);
  assert_true(parse_faults("drop=0.1,seed=7", settings, problem));
  assert_int_equal(settings.seed, 7);
}

void seed__malformed__none_and_a_reason(void**) {
  Problem problem;
  assert_true(seed_is_possible(problem));
  assert_false(seed_of_process().has_value());
  for (const char* text : {"x", "-1", "+1", "1.5", "1 ", "18446744073709551616"}) {
    setenv("DAPPLE_SEED", text, 1);
    provider::read_settings_again();
    assert_false(seed_of_process().has_value());
    assert_false(seed_is_possible(problem));
    assert_int_equal(problem.error, EINVAL);
    assert_non_null(strstr(problem.line, text));
  }
  setenv("DAPPLE_SEED", "18446744073709551615", 1);
  provider::read_settings_again();
  problem.clear();
  assert_true(seed_is_possible(problem) && problem.error == 0);
  assert_true(seed_of_process() == UINT64_MAX);
}

void parse__malformed__is_one_line_with_the_place(void**) {
  const char* wrong[] = {"",
                         "drop",
                         "drop=",
                         "drop=2",
                         "drop=-0.1",
                         "drop=x",
                         "drop=0.1,",
                         "drop=nan",
                         "delay=1",
                         "delay=11s",
                         "delay=1 ms",
                         "delay=-1ms",
                         "seed=-1",
                         "seed=1e3",
                         "seed=18446744073709551616",
                         "Drop=0.1",
                         "order=",
                         "order=reverse",
                         "drop=0.1 ,dup=0",
                         "loss=0.1",
                         "drop=0.1;seed=7",
                         "delay=1e999s",
                         "drop=0x1p-3z"};
  for (const char* text : wrong) {
    FaultSettings settings;
    Problem problem;
    assert_false(parse_faults(text, settings, problem));
    assert_int_equal(problem.error, EINVAL);
    assert_memory_equal(problem.line, "DAPPLE_FAULTS: ", 15);
    assert_null(strchr(problem.line, '\n'));
  }
}

void parse__each_mistake__a_line_of_its_own_with_the_whole_word(void**) {
  const struct {
    const char* text;
    const char* line;
  } kWrong[] = {
      {"drop=2", "DAPPLE_FAULTS: \"drop=2\": a probability is a number from 0 to 1"},
      {"delay=1", "DAPPLE_FAULTS: \"delay=1\": a delay is a number with ns, us, ms or s, and 10s at most"},
      {"order=reverse", "DAPPLE_FAULTS: \"order=reverse\": an order is random or weak"},
      {"seed=x", "DAPPLE_FAULTS: \"seed=x\": a seed is a number of 64 bits"},
      {"missed=256", "DAPPLE_FAULTS: \"missed=256\": an exit code is a number from 1 to 255"},
      {"arm=20", "DAPPLE_FAULTS: \"arm=20\": \"20\" is no time such as 20ms, with ns, us, ms or s, and 10s at most"},
      {"registered=1k", "DAPPLE_FAULTS: \"registered=1k\": \"1k\" is no number of bytes, 1 or more"},
      {"drop", "DAPPLE_FAULTS: \"drop\": it has no =, as drop=0.01 and ibv_reg_mr@3=ENOMEM have"},
      {"drop=0.1,", "DAPPLE_FAULTS: \"\": a word is empty"},
      {"ibv_create_completion_queue@1=ENOMEM",
       "DAPPLE_FAULTS: \"ibv_create_completion_queue@1=ENOMEM\": no plan counts \"ibv_create_completion_queue\"; "
       "dapple-soft(7) lists the names"},
      {"ibv_reg_mr@first=ENOMEM",
       "DAPPLE_FAULTS: \"ibv_reg_mr@first=ENOMEM\": \"first\" is no number of a call, 1 or more"},
      {"ibv_reg_mr@1=ENOSUCH",
       "DAPPLE_FAULTS: \"ibv_reg_mr@1=ENOSUCH\": \"ENOSUCH\" is no errno, such as ENOMEM or 12"},
      {"completion@1=IBV_WC_RETRY_EXC_ERR",
       "DAPPLE_FAULTS: \"completion@1=IBV_WC_RETRY_EXC_ERR\": \"IBV_WC_RETRY_EXC_ERR\" is no status of enum "
       "ibv_wc_status for an error, without IBV_WC_"},
      {"event@1=PORT",
       "DAPPLE_FAULTS: \"event@1=PORT\": \"PORT\" is no event of enum ibv_event_type, without IBV_EVENT_"},
      {"link@1=20",
       "DAPPLE_FAULTS: \"link@1=20\": \"20\" is no time such as 20ms, with ns, us, ms or s, and 10s at most"},
      {"ibv_reg_mr=1@1", "DAPPLE_FAULTS: \"ibv_reg_mr=1@1\": it is not of the form NAME@N=RESULT"},
      {"loss=1",
       "DAPPLE_FAULTS: \"loss=1\": there is no word with this name: they are drop=, dup=, reorder=, corrupt=, delay=, "
       "order=, seed=, registered=, arm=, missed=, and NAME@N=RESULT"},
  };
  for (const auto& [text, line] : kWrong) {
    FaultSettings settings;
    Problem problem;
    assert_false(parse_faults(text, settings, problem));
    assert_string_equal(problem.line, line);
  }
}

void parse__missed__an_exit_code(void**) {
  FaultSettings settings;
  Problem problem;
  assert_true(parse_faults("ibv_reg_mr@1=EIO", settings, problem));
  assert_int_equal(settings.missed, 0);
  assert_true(parse_faults("ibv_reg_mr@1=EIO,missed=9", settings, problem));
  assert_int_equal(settings.missed, 9);
}

void disturbance_of__word__those_that_may_come(void**) {
  assert_true(disturbance_of("arm=20ms") == Disturbance::kArmed);
  assert_true(disturbance_of("drop=0.01") == Disturbance::kDrop);
  assert_true(disturbance_of("delay=1ms") == Disturbance::kDelay);
  assert_true(disturbance_of("order=weak") == Disturbance::kOrder);
  for (const char* none : {"drop=0", "drop=0.0", "delay=0ms", "seed=7", "missed=9", "ibv_reg_mr@1=EIO", "drop"})
    assert_true(disturbance_of(none) == Disturbance::kCount);
}

void parse__65_planned_faults__the_line_names_the_limit(void**) {
  char text[1300] = "completion@1=RETRY_EXC_ERR";
  for (int i = 1; i < 64; i++) strcat(text, ",ibv_reg_mr@1=EIO");
  FaultSettings settings;
  Problem problem;
  assert_true(parse_faults(text, settings, problem));
  const size_t end = strlen(text);
  strcpy(text + end, ",drop=2");
  assert_false(parse_faults(text, settings, problem));
  assert_non_null(strstr(problem.line, "\"drop=2\""));
  strcpy(text + end, ",drop=0.5,event@1=CQ_ERR");
  assert_false(parse_faults(text, settings, problem));
  assert_int_equal(problem.error, EINVAL);
  assert_string_equal(problem.line, "DAPPLE_FAULTS: more than 64 calls, completions and events are planned");
}

void next__same_seed__same_fates(void**) {
  FaultSettings settings;
  settings.drop = settings.duplicate = settings.reorder = settings.corrupt = 0.5;
  settings.seed = 9;
  FaultSource a(settings), b(settings);
  settings.seed = 10;
  FaultSource other(settings);
  int differ = 0, dropped = 0, damaged = 0;
  for (int i = 0; i < 1000; i++) {
    const Fate x = a.next(100), y = b.next(100), z = other.next(100);
    assert_true(x.dropped == y.dropped && x.duplicated == y.duplicated);
    assert_true(x.damaged_bit == y.damaged_bit && x.delay_ns == y.delay_ns);
    assert_true(x.damaged_bit == UINT32_MAX || x.damaged_bit < 800);
    differ += x.dropped != z.dropped ? 1 : 0;
    dropped += x.dropped ? 1 : 0;
    damaged += x.damaged_bit != UINT32_MAX ? 1 : 0;
  }
  assert_in_range(differ, 400, 600);
  assert_in_range(dropped, 400, 600);
  assert_in_range(damaged, 400, 600);
}

void delay_queue__packets__come_by_time_and_then_by_order(void**) {
  const auto queue = DelayQueue::create();
  std::byte bytes[4] = {};
  const uint64_t dues[] = {30, 10, 20, 10, 30};
  for (int i = 0; i < 5; i++) {
    bytes[0] = static_cast<std::byte>(i);
    assert_true(queue->put(dues[i], {}, bytes));
  }
  assert_true(queue->next_due() == 10);
  assert_null(queue->take(9));
  const int wanted[] = {1, 3, 2, 0, 4};
  for (const int number : wanted) {
    const DelayQueue::Packet* packet = queue->take(100);
    assert_non_null(packet);
    assert_int_equal(static_cast<int>(packet->bytes[0]), number);
    assert_int_equal(packet->size, 4);
  }
  assert_null(queue->take(UINT64_MAX - 1));
  assert_true(queue->next_due() == UINT64_MAX);
}

void delay_queue__full_or_too_large__refuses(void**) {
  const auto queue = DelayQueue::create();
  static std::byte bytes[DelayQueue::kPacketSize + 1];
  assert_false(queue->put(1, {}, bytes));
  for (size_t i = 0; i < DelayQueue::kPlaces; i++) assert_true(queue->put(i, {}, {bytes, 1}));
  assert_false(queue->put(1, {}, {bytes, 1}));
  assert_non_null(queue->take(0));
  assert_true(queue->put(1, {}, {bytes, 1}));
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test(parse__all_settings__are_read),
      cmocka_unit_test(parse__malformed__is_one_line_with_the_place),
      cmocka_unit_test(parse__each_mistake__a_line_of_its_own_with_the_whole_word),
      cmocka_unit_test(parse__missed__an_exit_code),
      cmocka_unit_test(disturbance_of__word__those_that_may_come),
      cmocka_unit_test(parse__65_planned_faults__the_line_names_the_limit),
      cmocka_unit_test_setup_teardown(parse__seed__the_plans_before_the_process, without_seed, without_seed),
      cmocka_unit_test_setup_teardown(seed__malformed__none_and_a_reason, without_seed, without_seed),
      cmocka_unit_test(next__same_seed__same_fates),
      cmocka_unit_test(delay_queue__packets__come_by_time_and_then_by_order),
      cmocka_unit_test(delay_queue__full_or_too_large__refuses),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
