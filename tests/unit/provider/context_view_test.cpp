// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/context_view.hpp"

#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/fake_context.hpp"

using namespace dapple::provider;

namespace {

ContextView view;

const char* open_as(FakeContext& fake, const Layout& layout) {
  const VerbsLibrary library = {&layout, FakeContext::set_operations, nullptr};
  return ContextView::open(library, fake.context, &view);
}

size_t last_anchor(const Layout& layout) {
  return static_cast<size_t>(layout.index(Operation::rereg_mr));
}

// The sizes depend on the machine.
void layouts__one_has_the_size_of_the_headers_context(void**) {
  bool found = false;
  for (const Layout& layout : kLayouts) found = found || layout.context_size == sizeof(verbs_context);
  assert_true(found);
}

void open__every_known_layout_proven(void**) {
  for (const Layout& layout : kLayouts) {
    FakeContext fake(layout);
    assert_null(ContextView::open(fake.library, fake.context, &view));
    assert_ptr_equal(view.get(Operation::free_context), fake.operation(Operation::free_context));
    assert_int_equal(fake.num_sets, 0);
  }
}

void open__another_layouts_table_refused(void**) {
  for (const Layout& real : kLayouts) {
    for (const Layout& believed : kLayouts) {
      if (real.column == believed.column) continue;
      FakeContext fake(real);
      assert_non_null(open_as(fake, believed));
      // The size is not the only reason.
      fake.extended()->sz = believed.context_size;
      assert_non_null(open_as(fake, believed));
      assert_int_equal(fake.num_sets, 0);
    }
  }
}

// A vendor's build with one more operation before the last one that we use.
void open__table_with_an_operation_more_refused(void**) {
  for (const Layout& layout : kLayouts) {
    for (size_t position = 0; position <= last_anchor(layout); ++position) {
      FakeContext fake(layout);
      for (size_t i = layout.num_operations; i > position; --i) fake.set_entry(i, fake.entry(i - 1));
      fake.set_entry(position, FakeContext::number(500));
      assert_non_null(open_as(fake, layout));
    }
  }
}

void open__table_with_an_operation_less_refused(void**) {
  for (const Layout& layout : kLayouts) {
    for (size_t position = 0; position <= last_anchor(layout); ++position) {
      FakeContext fake(layout);
      for (size_t i = position; i + 1 < layout.num_operations; ++i) fake.set_entry(i, fake.entry(i + 1));
      fake.set_entry(layout.num_operations - 1, FakeContext::number(500));
      assert_non_null(open_as(fake, layout));
    }
  }
}

void open__public_pointer_that_differs_refused(void**) {
  for (const Layout& layout : kLayouts) {
    FakeContext fake(layout);
    fake.context->ops.poll_cq = nullptr;
    assert_non_null(open_as(fake, layout));
    fake.publish();
    assert_null(open_as(fake, layout));
    fake.extended()->reg_dm_mr = nullptr;
    assert_non_null(open_as(fake, layout));
  }
}

void open__function_that_serves_two_operations_refused(void**) {
  constexpr Operation kAnchors[] = {Operation::alloc_mw,      Operation::bind_mw,   Operation::dealloc_mw,
                                    Operation::poll_cq,       Operation::post_recv, Operation::post_send,
                                    Operation::reg_dm_mr,     Operation::reg_mr,    Operation::post_srq_recv,
                                    Operation::req_notify_cq, Operation::rereg_mr,  Operation::dereg_mr};
  for (const Layout& layout : kLayouts) {
    for (const Operation anchor : kAnchors) {
      FakeContext fake(layout);
      fake.set_entry(0, fake.operation(anchor));
      assert_non_null(open_as(fake, layout));
    }
  }
}

void open__gap_refused(void**) {
  for (const Layout& layout : kLayouts) {
    for (size_t i = 0; i < layout.num_operations; ++i) {
      FakeContext fake(layout);
      fake.set_entry(i, nullptr);
      assert_non_null(open_as(fake, layout));
    }
  }
}

void open__context_without_what_is_needed_refused(void**) {
  FakeContext fake(kLayouts[0]);
  fake.context->abi_compat = nullptr;
  assert_non_null(open_as(fake, kLayouts[0]));
  fake.context->abi_compat = __VERBS_ABI_IS_EXTENDED;
  fake.extended()->priv = nullptr;
  assert_non_null(open_as(fake, kLayouts[0]));
}

void open__library_that_is_not_known_refused_with_its_reason(void**) {
  FakeContext fake(kLayouts[0]);
  const VerbsLibrary library = {nullptr, nullptr, "because"};
  assert_string_equal(ContextView::open(library, fake.context, &view), "because");
}

void set__replaces_what_is_given_and_nothing_else(void**) {
  for (const Layout& layout : kLayouts) {
    FakeContext fake(layout);
    assert_null(ContextView::open(fake.library, fake.context, &view));
    Replacements replacements = {};
    replacements[static_cast<size_t>(Operation::dereg_mr)] = FakeContext::number(700);
    replacements[static_cast<size_t>(Operation::free_context)] = FakeContext::number(701);
    view.set(replacements);
    assert_int_equal(fake.num_sets, 1);
    assert_ptr_equal(fake.set_at, fake.base());
    for (size_t i = 0; i < layout.num_operations; ++i) {
      if (static_cast<int>(i) == layout.index(Operation::dereg_mr)) {
        assert_ptr_equal(fake.entry(i), FakeContext::number(700));
      } else if (static_cast<int>(i) == layout.index(Operation::free_context)) {
        assert_ptr_equal(fake.entry(i), FakeContext::number(701));
      } else {
        assert_ptr_equal(fake.entry(i), FakeContext::number(i));
      }
    }
  }
}

// A release that appends operations and keeps everything else, including its private symbols' version.
void set__leaves_what_the_next_release_adds(void**) {
  for (const Layout& layout : kLayouts) {
    FakeContext fake(layout);
    fake.num_unknown = 64;
    assert_null(ContextView::open(fake.library, fake.context, &view));
    Replacements replacements = {};
    replacements[static_cast<size_t>(Operation::dereg_mr)] = FakeContext::number(700);
    view.set(replacements);
    assert_ptr_equal(fake.operation(Operation::dereg_mr), FakeContext::number(700));
    assert_int_equal(fake.num_unknown_set, 0);
  }
}

void get__operation_that_the_release_lacks_is_null(void**) {
  FakeContext old(kLayouts[0]);
  assert_null(ContextView::open(old.library, old.context, &view));
  assert_null(view.get(Operation::reg_mr_ex));
  FakeContext recent(kLayouts[2]);
  assert_null(ContextView::open(recent.library, recent.context, &view));
  assert_non_null(view.get(Operation::reg_mr_ex));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(layouts__one_has_the_size_of_the_headers_context),
      cmocka_unit_test(open__every_known_layout_proven),
      cmocka_unit_test(open__another_layouts_table_refused),
      cmocka_unit_test(open__table_with_an_operation_more_refused),
      cmocka_unit_test(open__table_with_an_operation_less_refused),
      cmocka_unit_test(open__public_pointer_that_differs_refused),
      cmocka_unit_test(open__function_that_serves_two_operations_refused),
      cmocka_unit_test(open__gap_refused),
      cmocka_unit_test(open__context_without_what_is_needed_refused),
      cmocka_unit_test(open__library_that_is_not_known_refused_with_its_reason),
      cmocka_unit_test(set__replaces_what_is_given_and_nothing_else),
      cmocka_unit_test(set__leaves_what_the_next_release_adds),
      cmocka_unit_test(get__operation_that_the_release_lacks_is_null),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
