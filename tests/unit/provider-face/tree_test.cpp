// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/tree.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::face;

namespace {

void path_before__folder__is_followed_by_its_contents(void**) {
  assert_true(path_before("a", "a/x"));
  assert_true(path_before("a/x", "a-b"));
  assert_true(path_before("a/z/z", "a0"));
  assert_false(path_before("a", "a"));
  assert_true(is_inside("a/x", "a"));
  assert_true(is_inside("a/x/y", "a"));
  assert_false(is_inside("ab", "a"));
  assert_false(is_inside("a", "a"));
}

void way_up__path__leads_to_its_first_folder(void**) {
  assert_string_equal(way_up("sys/devices/virtual/infiniband/d").c_str(), "../../../../");
  assert_string_equal(way_up("sys").c_str(), "");
}

void add__deep_path__brings_its_folders(void**) {
  Tree tree;
  tree.add_file("b/c/d", "text\n");
  tree.add_link("a", "b");
  tree.add_file("b/c/e", "text\n");
  assert_int_equal(tree.nodes().size(), 5);
  assert_string_equal(tree.nodes()[0].path.c_str(), "a");
  assert_string_equal(tree.nodes()[1].path.c_str(), "b");
  assert_true(tree.nodes()[1].kind == NodeKind::kFolder);
  assert_string_equal(tree.nodes()[2].path.c_str(), "b/c");
  assert_true(tree.find("b/c/e")->kind == NodeKind::kFile);
  assert_null(tree.find("b/c/f"));
}

void add__same_path_again__last_one_counts(void**) {
  Tree tree;
  tree.add_link("x/a", "old");
  tree.add_link("x/a", "new");
  tree.add_empty("x/b");
  assert_int_equal(tree.nodes().size(), 3);
  assert_string_equal(tree.find("x/a")->text.c_str(), "new");
  assert_true(tree.find("x/b")->kind == NodeKind::kEmpty);
}

void find_through_links__links__lead_to_the_node(void**) {
  Tree tree;
  tree.add_link("class/x", "../devices/x");
  tree.add_empty("devices/x/types/1");
  tree.add_link("devices/x/device", "../x");
  tree.add_link("devices/y", ".");
  const auto& nodes = tree.nodes();
  const Node* entry = tree.find("devices/x/types/1");
  for (const char* path : {"devices/x/types/1", "class/x/types/1", "class/x/device/device//types/./1",
                           "class/../devices/x/types/1", "devices/y/y/x/types/1", "class/x/../x/types/1"}) {
    assert_ptr_equal(find_through_links(nodes, path), entry);
  }
  assert_ptr_equal(find_through_links(nodes, "class/x"), tree.find("class/x"));
  assert_ptr_equal(find_through_links(nodes, "class/x/../"), tree.find("devices"));
}

void find_through_links__ways_out__find_nothing(void**) {
  Tree tree;
  tree.add_link("out", "../../etc");
  tree.add_link("whole", "/a");
  tree.add_link("round", "round");
  tree.add_link("lost", "absent");
  tree.add_file("a", "text\n");
  const auto& nodes = tree.nodes();
  for (const char* path : {"", "/", ".", "..", "/a", "a/b", "a/..", "out/passwd", "whole/b", "round/b", "lost/b",
                           "absent", "absent/../a", "../a"}) {
    assert_null(find_through_links(nodes, path));
  }
  assert_ptr_equal(find_through_links(nodes, "./a"), tree.find("a"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(path_before__folder__is_followed_by_its_contents),
      cmocka_unit_test(way_up__path__leads_to_its_first_folder),
      cmocka_unit_test(add__deep_path__brings_its_folders),
      cmocka_unit_test(add__same_path_again__last_one_counts),
      cmocka_unit_test(find_through_links__links__lead_to_the_node),
      cmocka_unit_test(find_through_links__ways_out__find_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
