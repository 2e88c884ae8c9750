// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The way through a small tree and the running kernel's own files.
#include "provider/preload/doors/paths/walk.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/provider/cmocka.hpp"

using dapple::doors::kPathSize;
using dapple::doors::walk;
using dapple::doors::Walked;
using End = dapple::doors::Walked::End;
namespace fs = std::filesystem;

namespace {

constexpr char kDevice[] = "/sys/devices/virtual/infiniband/dapple7";
constexpr char kFunction[] = "/sys/devices/pci0000:fa/0000:fa:00.0/0000:fb:00.0";

fs::path place;  // the tree's folder is `place`/tree
int root = -1;

void add_file(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "text\n";
}

void add_link(const fs::path& path, const char* target) {
  fs::create_directories(path.parent_path());
  fs::create_symlink(target, path);
}

int make_tree(void**) {
  std::string name = fs::temp_directory_path() / "dapple-walk-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return -1;
  place = name;
  const std::string tree = (place / "tree").string();
  add_file(tree + kDevice + "/node_guid");
  add_file(tree + kDevice + "/ports/1/state");
  add_link(tree + kDevice + "/subsystem", "../../../../class/infiniband");
  add_link(tree + "/sys/class/infiniband/dapple7", "../../devices/virtual/infiniband/dapple7");
  add_link(tree + "/sys/class/infiniband/kernels", "/sys/class/infiniband/kernels");
  add_link(tree + "/sys/class/infiniband/out", "/proc/version");
  add_link(tree + "/sys/class/infiniband/loop", "loop");
  add_file(tree + "/dev/infiniband/uverbs5007");
  add_file(tree + kFunction + "/vendor");
  fs::create_directories(tree + "/sys/class/net/lo");
  add_link(tree + "/sys/class/net/lo/device", "../../../devices/pci0000:fa/0000:fa:00.0/0000:fb:00.0");
  add_link(place / "in", "/sys/class/infiniband");
  add_link(place / "around", "/sys/class/../class/infiniband/dapple7");
  root = open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return root >= 0 ? 0 : -1;
}

int remove_tree(void**) {
  close(root);
  fs::remove_all(place);
  return 0;
}

struct Case {
  const char* path;
  End end;
  std::string result;  // the path, or nothing
  int error = 0;
  bool follow = true;
  const char* base = "/";
};

void check(const Case& each) {
  static Walked walked;
  walk(root, each.base, each.path, each.follow, walked);
  if (walked.end != each.end || (each.end == End::kFailed ? walked.error != each.error : each.result != walked.path)) {
    fail_msg("%s from %s: end %d, error %d, %s", each.path, each.base, static_cast<int>(walked.end), walked.error,
             walked.path);
  }
  if (each.end != End::kFailed) assert_int_equal(walked.size, strlen(walked.path));
}

void walk__path_in_the_tree_is_found(void**) {
  const std::string device = kDevice;
  const Case cases[] = {
      {"/sys/class/infiniband", End::kTree, "/sys/class/infiniband"},
      {"/sys/class/infiniband/", End::kTree, "/sys/class/infiniband"},
      {"//sys/./class//infiniband/.", End::kTree, "/sys/class/infiniband"},
      {"/proc/self/root/sys/class/infiniband", End::kTree, "/sys/class/infiniband"},
      {"/proc/../sys/class/infiniband", End::kTree, "/sys/class/infiniband"},
      {"/sys/class/infiniband/dapple7", End::kTree, device},
      {"/sys/class/infiniband/dapple7", End::kTree, "/sys/class/infiniband/dapple7", 0, false},
      {"/sys/class/infiniband/dapple7/", End::kTree, device, 0, false},
      {"/sys/class/infiniband/dapple7/ports/1/state", End::kTree, device + "/ports/1/state"},
      {"/sys/class/infiniband/dapple7/subsystem/dapple7/node_guid", End::kTree, device + "/node_guid"},
      {"/sys/class/infiniband/dapple7/../dapple7/ports/../ports", End::kTree, device + "/ports"},
      {"/sys/class/infiniband/nothing", End::kTree, "/sys/class/infiniband/nothing"},
      {"/dev/infiniband/uverbs5007", End::kTree, "/dev/infiniband/uverbs5007"},
      {"/sys/class/net/lo/device", End::kTree, kFunction},
      {"/sys/class/net/lo/device", End::kTree, "/sys/class/net/lo/device", 0, false},
      {"/sys/class/net/./lo/./device/vendor", End::kTree, std::string(kFunction) + "/vendor"},
      {kFunction, End::kTree, kFunction},
      {"state", End::kTree, device + "/ports/1/state", 0, true, "/sys/devices/virtual/infiniband/dapple7/ports/1"},
      {"../../node_guid", End::kTree, device + "/node_guid", 0, true,
       "/sys/devices/virtual/infiniband/dapple7/ports/1"},
      {".", End::kTree, "/sys/class/infiniband", 0, true, "/sys/class/infiniband"},
  };
  for (const Case& each : cases) check(each);
}

void walk__link_into_the_tree_is_followed(void**) {
  const std::string in = (place / "in/dapple7/node_guid").string();
  const std::string around = (place / "around/ports").string();
  const std::string link = (place / "in").string();
  check({in.c_str(), End::kTree, std::string(kDevice) + "/node_guid"});
  check({around.c_str(), End::kTree, std::string(kDevice) + "/ports"});
  check({link.c_str(), End::kKernel, link, 0, false});
  check({"in", End::kTree, "/sys/class/infiniband", 0, true, place.c_str()});
}

void walk__path_out_of_the_tree_is_the_kernels(void**) {
  const Case cases[] = {
      {"/sys/class/infiniband/..", End::kKernel, "/sys/class/"},
      {"/sys/class/infiniband/../..", End::kKernel, "/sys/"},
      {"/sys/class/infiniband/../../..", End::kKernel, "/"},
      {"/sys/class/infiniband/../../../..", End::kKernel, "/"},
      {"/sys/class/infiniband/out", End::kKernel, "/proc/version"},
      {"/sys/class/infiniband/kernels", End::kKernel, "/sys/class/infiniband/kernels"},
      {"../../../etc", End::kKernel, "/etc", 0, true, "/sys/class/infiniband"},
      {"/sys/class/net/lo", End::kKernel, "/sys/class/net/lo", 0, false},
      {"/sys/class/nothing", End::kKernel, "/sys/class/nothing"},
      {"/sys", End::kKernel, "/sys"},
      {"/", End::kKernel, "/"},
  };
  for (const Case& each : cases) check(each);
  // The kernel's lo is a link, and the tree's lo a folder with one entry.
  if (fs::exists("/sys/devices/virtual/net/lo")) {
    check({"/sys/class/infiniband/../net/lo/address", End::kKernel, "/sys/devices/virtual/net/lo/address"});
    check({"/sys/class/net/lo/../lo/device", End::kKernel, "/sys/devices/virtual/net/lo/device"});
  }
}

void walk__bad_path_fails_as_in_the_kernel(void**) {
  const std::string long_name = "/sys/class/infiniband/" + std::string(NAME_MAX + 1, 'x');
  std::string long_path = "/sys/class/infiniband";
  while (long_path.size() < kPathSize) long_path += "/.";
  const Case cases[] = {
      {"", End::kFailed, "", ENOENT},
      {"/sys/class/infiniband/nothing/more", End::kFailed, "", ENOENT},
      {"/sys/class/infiniband/dapple7/node_guid/", End::kFailed, "", ENOTDIR},
      {"/sys/class/infiniband/dapple7/node_guid/.", End::kFailed, "", ENOTDIR},
      {"/sys/class/infiniband/dapple7/node_guid/..", End::kFailed, "", ENOTDIR},
      {"/sys/class/infiniband/dapple7/node_guid/x", End::kFailed, "", ENOTDIR},
      {"/sys/class/infiniband/loop", End::kFailed, "", ELOOP},
      {"/sys/class/infiniband/loop/x", End::kFailed, "", ELOOP},
      {long_name.c_str(), End::kFailed, "", ENAMETOOLONG},
      {long_path.c_str(), End::kFailed, "", ENAMETOOLONG},
  };
  for (const Case& each : cases) check(each);
  check({"/sys/class/infiniband/loop", End::kTree, "/sys/class/infiniband/loop", 0, false});
}

// Without a tree the path so far and what is left show where the path would lead.
void walk__no_tree_shows_the_wanted_path(void**) {
  static Walked walked;
  const std::string path = (place / "around/ports/1").string();
  walk(-1, "/", path.c_str(), true, walked);
  if (fs::exists("/sys/class/infiniband")) skip();
  assert_true(walked.end == End::kFailed && walked.error == ENOENT);
  assert_string_equal(walked.path, "/sys/class/infiniband/dapple7/ports/1");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(walk__path_in_the_tree_is_found),
      cmocka_unit_test(walk__link_into_the_tree_is_followed),
      cmocka_unit_test(walk__path_out_of_the_tree_is_the_kernels),
      cmocka_unit_test(walk__bad_path_fails_as_in_the_kernel),
      cmocka_unit_test(walk__no_tree_shows_the_wanted_path),
  };
  return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
