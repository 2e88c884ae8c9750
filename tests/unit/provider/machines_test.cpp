// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// machines_test FOLDER: checks all attributes of every machine in the folder, on any machine.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/machine_file.hpp"

namespace {

namespace fs = std::filesystem;

struct Case {
  std::string file;
  std::string name;
  std::string root;
  machine_file::MachineFile machine;
  std::map<std::string, std::string> found;
};

int set_up(void** state) {
  auto& test = *static_cast<Case*>(*state);
  char folder[] = "/tmp/dapple-machine.XXXXXX";
  if (mkdtemp(folder) == nullptr) return -1;
  test.root = folder;
  if (!machine_file::read(test.file, test.root, test.machine)) return -1;
  test.found = machine_file::fields_of(machine_file::describe(test.machine, test.root));
  return 0;
}

int tear_down(void** state) {
  const auto& test = *static_cast<Case*>(*state);
  std::error_code ignored;
  fs::remove_all(test.root, ignored);
  return 0;
}

void attributes__are_as_expected(void** state) {
  const auto& test = *static_cast<Case*>(*state);
  for (const auto& [field, value] : test.found) {
    const auto expected = test.machine.expected.find(field);
    if (expected == test.machine.expected.end()) fail_msg("no line expects %s", field.c_str());
    if (value != expected->second) fail_msg("%s: %s, not %s", field.c_str(), value.c_str(), expected->second.c_str());
  }
  assert_int_equal(test.found.size(), test.machine.expected.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::set<fs::path> files;
  if (argc == 2) {
    for (const auto& entry : fs::directory_iterator(argv[1])) files.insert(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: machines_test FOLDER-WITH-MACHINES\n");
    return 2;
  }
  std::vector<Case> cases;
  for (const auto& file : files) cases.push_back({file.string(), file.filename().string(), {}, {}, {}});
  std::vector<CMUnitTest> tests;
  for (Case& test : cases) {
    tests.push_back({test.name.c_str(), attributes__are_as_expected, set_up, tear_down, &test});
  }
  return _cmocka_run_group_tests("machines", tests.data(), tests.size(), nullptr, nullptr);
}
