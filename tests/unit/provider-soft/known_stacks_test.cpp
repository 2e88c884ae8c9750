// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/known_stacks.hpp"

#include <cstdint>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::KnownStack;
using dapple::soft::check::KnownStacks;
using dapple::soft::check::Stack;

Stack stack_of(uintptr_t outermost, unsigned script = 0) {
  Stack stack;
  stack.callers[0] = reinterpret_cast<void*>(uintptr_t{1});
  stack.callers[1] = reinterpret_cast<void*>(outermost);
  stack.count = 2;
  stack.script = script;
  return stack;
}

const Stack* address(const KnownStack& known) {
  return &static_cast<const Stack&>(known);
}

void known_stacks__same_callers__are_one_stack(void**) {
  KnownStacks stacks;
  const KnownStack one = stacks.known(stack_of(2));
  const KnownStack other = stacks.known(stack_of(3));
  const KnownStack in_script = stacks.known(stack_of(2, 1));
  assert_ptr_equal(address(stacks.known(stack_of(2))), address(one));
  assert_ptr_not_equal(address(one), address(other));
  assert_ptr_not_equal(address(one), address(in_script));
  assert_int_equal(static_cast<const Stack&>(one).count, 2);
  assert_ptr_equal(static_cast<const Stack&>(other).callers[1], reinterpret_cast<void*>(uintptr_t{3}));
}

void known_stacks__too_many__have_no_callers(void**) {
  KnownStacks stacks;
  for (uintptr_t i = 0; i < KnownStacks::kMax; i++) stacks.known(stack_of(i));
  assert_int_equal(address(stacks.known(stack_of(KnownStacks::kMax)))->count, 0);
  assert_int_equal(address(stacks.known(stack_of(7)))->count, 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(known_stacks__same_callers__are_one_stack),
      cmocka_unit_test(known_stacks__too_many__have_no_callers),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
