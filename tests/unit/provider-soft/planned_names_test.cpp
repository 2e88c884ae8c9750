// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Plans of faults and traces have every verb that the device serves.
#include "provider/soft/faults/planned_names.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "provider/soft/objects/verbs.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::provider::Operation;

namespace {

#define DAPPLE_LISTED(name) Operation::name,
constexpr Operation kPlanned[] = {DAPPLE_PLANNED_VERBS(DAPPLE_LISTED)};
constexpr Operation kUnfailing[] = {DAPPLE_UNFAILING_VERBS(DAPPLE_LISTED)};
#undef DAPPLE_LISTED
// Operations that belong to the verb of another one: to a program it is ibv_reg_mr().
constexpr Operation kOfOtherVerbs[] = {Operation::reg_mr_ex};

template <typename List>
bool has(const List& list, Operation operation) {
  return std::find(std::begin(list), std::end(list), operation) != std::end(list);
}

// Whether the device serves the operation; Operations lacks members for some of libibverbs'.
#define DAPPLE_OPERATION(name, ...)           \
  template <typename Table>                   \
  bool serves_##name(const Table& table) {    \
    if constexpr (requires { table.name; }) { \
      return table.name != nullptr;           \
    } else {                                  \
      return false;                           \
    }                                         \
  }
#include "provider/private_api/operations.inc"
#undef DAPPLE_OPERATION

struct Served {
  Operation operation;
  const char* name;
  bool is_served;
};

void every_verb__is_in_one_list(void**) {
  const Operations& table = plain_operations();
  const Served all[] = {
#define DAPPLE_OPERATION(name, ...) {Operation::name, #name, serves_##name(table)},
#include "provider/private_api/operations.inc"
#undef DAPPLE_OPERATION
  };
  size_t served = 0;
  for (const Served& each : all) {
    const int lists = int{has(kPlanned, each.operation)} + int{has(kUnfailing, each.operation)} +
                      int{has(kOfOtherVerbs, each.operation)};
    if (lists != int{each.is_served}) fail_msg("%s is served: %d, and in %d lists", each.name, each.is_served, lists);
    served += each.is_served ? 1 : 0;
  }
  assert_int_equal(served, std::size(kPlanned) + std::size(kUnfailing) + std::size(kOfOtherVerbs));
}

void counted_of__the_name_of_libibverbs_function(void**) {
  constexpr auto kValues = static_cast<size_t>(Operation::query_rt_values);
  assert_int_equal(counted_of("ibv_query_rt_values_ex"), kValues);
  assert_string_equal(counted_name(kValues), "ibv_query_rt_values_ex");
  assert_int_equal(counted_of("ibv_get_srq_num"), static_cast<size_t>(Operation::get_srq_num));
  assert_int_equal(counted_of("ibv_unimport_mr"), SIZE_MAX);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_verb__is_in_one_list),
      cmocka_unit_test(counted_of__the_name_of_libibverbs_function),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
