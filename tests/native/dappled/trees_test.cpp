// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's files about the devices, which dappled writes for programs.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "provider/member/daemon_link.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::status_of;

namespace {

char place[] = "/tmp/dapple-trees-test-XXXXXX";
const char kPort[] = "sys/class/infiniband/dapple0/ports/1";

// A file's contents; the errno's text if it cannot be read.
std::string text_at(int folder, const std::string& path) {
  char text[256];
  const OwnedFd file(openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? read(file.get(), text, sizeof text) : -1;
  return size < 0 ? strerror(errno) : std::string(text, static_cast<size_t>(size));
}

int entries_of(const char* path) {
  int count = 0;
  DIR* stream = opendir(path);
  if (stream == nullptr) return -1;
  while (readdir(stream) != nullptr) count++;
  closedir(stream);
  return count - 2;
}

bool soon(bool (*happens)()) {
  for (int i = 0; i < 2000; i++) {
    if (happens()) return true;
    usleep(10000);
  }
  return false;
}

void dappled__asked_for_the_tree__hands_over_its_folder(void**) {
  assert_int_equal(entries_of(place), 0);
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder, again;
  char path[kTreePathSize];
  assert_int_equal(entries_of(place), 0);
  assert_true(link->tree(folder, path, problem));
  assert_int_equal(entries_of(place), 1);
  assert_memory_equal(path, place, strlen(place));
  assert_string_equal(text_at(folder.get(), "sys/class/infiniband/dapple0/node_type").c_str(), "1: CA\n");
  assert_string_equal(text_at(folder.get(), std::string(kPort) + "/state").c_str(), "4: ACTIVE\n");
  assert_string_equal(text_at(folder.get(), std::string(kPort) + "/gids/1").c_str(),
                      "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
  struct stat status;
  assert_int_equal(fstatat(folder.get(), "dev/infiniband/uverbs4096", &status, 0), 0);
  assert_true(S_ISCHR(status.st_mode));
  assert_int_equal(stat(path, &status), 0);
  // Nobody writes there, except root.
  assert_int_equal(status.st_mode & 0777, 0755);
  assert_true(link->tree(again, path, problem));
  assert_int_equal(entries_of(place), 1);
  link.reset();
  assert_true(tests::ends_soon());
  assert_int_equal(entries_of(place), 0);
}

void dappled__address_comes__is_in_the_tree(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder;
  char path[kTreePathSize];
  bool unreadable = false;
  assert_true(link->tree(folder, path, problem));
  const std::string type = std::string(kPort) + "/gid_attrs/types/3", gid = std::string(kPort) + "/gids/3";
  assert_true(link->refresh_tree(type.c_str(), unreadable, problem));
  assert_true(unreadable);
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo"))
    skip_test("no address can be added");
  assert_true(link->refresh_tree(type.c_str(), unreadable, problem));
  assert_false(unreadable);
  assert_string_equal(text_at(folder.get(), type).c_str(), "RoCE v2\n");
  assert_string_not_equal(text_at(folder.get(), gid).c_str(), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  assert_true(tests::run("ip addr del 10.9.9.1/32 dev lo && ip addr del 10.9.9.2/32 dev lo"));
  assert_true(link->refresh_tree(type.c_str(), unreadable, problem));
  assert_true(unreadable);
}

void dappled__netdev_comes_and_goes__has_a_folder(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder;
  char path[kTreePathSize];
  bool unreadable = false;
  assert_true(link->tree(folder, path, problem));
  if (!tests::run("ip link add d7 type veth peer name d8")) skip_test("no netdev can be made");
  const char parent[] = "sys/class/infiniband/dapple1/parent";
  assert_true(link->refresh_tree("sys/class/infiniband", unreadable, problem));
  assert_true(text_at(folder.get(), parent)[0] == 'd');
  assert_string_equal(text_at(folder.get(), "sys/class/infiniband/dapple1/ports/1/state").c_str(), "1: DOWN\n");
  tests::run("ip link del d7");
  assert_true(link->refresh_tree("sys/class/infiniband", unreadable, problem));
  assert_string_equal(text_at(folder.get(), parent).c_str(), strerror(ENOENT));
  assert_string_equal(text_at(folder.get(), "sys/devices/virtual/infiniband/dapple1").c_str(), strerror(ENOENT));
}

void dappled__device_counts__counters_follow(void**) {
  Problem problem;
  Slot slot;
  const auto link = tests::link_with_slot(slot);
  assert_non_null(link.get());
  DeviceList list;
  DeviceInfo device;
  assert_true(link->devices(list, problem) && link->device(list.indexes[0], device, problem));
  OwnedFd folder;
  char path[kTreePathSize];
  assert_true(link->tree(folder, path, problem));
  const std::string packets = std::string(kPort) + "/hw_counters/sent_pkts";
  const std::string words = std::string(kPort) + "/counters/port_rcv_data";
  assert_string_equal(text_at(folder.get(), packets).c_str(), "0\n");
  DeviceTraffic& traffic = traffic_of(*slot.devices, device.guid);
  traffic.sent_packets.add(5);
  traffic.received_bytes.add(4096);
  bool unreadable = true;
  assert_true(link->refresh_tree(packets.c_str(), unreadable, problem));
  assert_false(unreadable);
  assert_string_equal(text_at(folder.get(), packets).c_str(), "5\n");
  assert_string_equal(text_at(folder.get(), words).c_str(), "1024\n");
}

void dappled__paths_out_of_the_tree__show_nothing(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder;
  char path[kTreePathSize];
  bool unreadable = true;
  assert_true(link->tree(folder, path, problem));
  for (const char* strange : {"", "/", "../../../../proc/self/ns/net", "/proc/self/ns/net", "dev/infiniband/rdma_cm",
                              "sys", "sys/class/infiniband/dapple0/ports/1/counters/absent"}) {
    assert_true(link->refresh_tree(strange, unreadable, problem));
    assert_false(unreadable);
  }
  assert_false(link->refresh_tree(std::string(5000, 'x').c_str(), unreadable, problem));
  assert_int_equal(problem.error, ENAMETOOLONG);
}

void dappled__is_killed__next_one_removes_its_folder(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder;
  char path[kTreePathSize], next[kTreePathSize];
  bool unreadable = true;
  assert_true(link->tree(folder, path, problem));
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  // The next one has no tree yet.
  while (link->refresh_tree("sys", unreadable, problem)) usleep(1000);
  assert_int_equal(problem.error, ESTALE);
  assert_true(link->tree(folder, next, problem));
  assert_string_not_equal(path, next);
  assert_int_equal(entries_of(place), 1);
  assert_int_equal(access(path, F_OK), -1);
}

void dappled__folder_is_taken_away__makes_another(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  OwnedFd folder;
  char path[kTreePathSize], next[kTreePathSize];
  bool unreadable = true;
  assert_true(link->tree(folder, path, problem));
  assert_true(tests::run((std::string("rm -rf ") + path).c_str()));
  const std::string counter = std::string(kPort) + "/counters/symbol_error";
  assert_false(link->refresh_tree(counter.c_str(), unreadable, problem));
  assert_int_equal(problem.error, ESTALE);
  assert_true(link->tree(folder, next, problem));
  assert_string_equal(text_at(folder.get(), counter).c_str(), "0\n");
}

// A limit on the size of files stands for full disks.
void dappled__no_place_can_be_written__names_them(void**) {
  assert_true(tests::ends_soon());
  rlimit before, none;
  getrlimit(RLIMIT_FSIZE, &before);
  none = before;
  none.rlim_cur = none.rlim_max = 0;
  Problem problem;
  auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  assert_int_equal(prlimit(static_cast<pid_t>(status_of(*link).process), RLIMIT_FSIZE, &none, nullptr), 0);
  OwnedFd folder;
  char path[kTreePathSize];
  assert_false(link->tree(folder, path, problem));
  printf("%s\n", problem.line);
  assert_non_null(strstr(problem.line, place));
  assert_non_null(strstr(problem.line, "/dev/shm: "));
  assert_non_null(strstr(problem.line, "/tmp: "));
  assert_int_equal(entries_of(place), 0);
  // Everything else goes on.
  DeviceList list;
  assert_true(link->devices(list, problem));
  link.reset();
  assert_true(tests::ends_soon());
}

char exported[] = "/tmp/dapple-export-test-XXXXXX";

void dappled__exports__keeps_the_folder_up_to_date(void**) {
  Problem problem;
  Slot slot;
  auto link = tests::link_with_slot(slot);
  assert_non_null(link.get());
  assert_non_null(mkdtemp(exported));
  const OwnedFd folder(open(exported, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  assert_true(link->export_tree(folder.get(), problem));
  assert_string_equal(text_at(folder.get(), "dapple0/ports/1/state").c_str(), "4: ACTIVE\n");
  assert_string_equal(text_at(folder.get(), "dapple0/ports/1/gid_attrs/types/31").c_str(), strerror(EINVAL));
  DeviceList list;
  DeviceInfo device;
  assert_true(link->devices(list, problem) && link->device(list.indexes[0], device, problem));
  traffic_of(*slot.devices, device.guid).sent_packets.add(77);
  assert_true(soon([] {
    return text_at(AT_FDCWD, std::string(exported) + "/dapple0/ports/1/counters/port_xmit_packets") == "77\n";
  }));
  link.reset();
  assert_true(soon([] { return entries_of(exported) == 0; }));
  assert_int_equal(rmdir(exported), 0);
}

// dappled would remove what is in the folder.
void dappled__foreign_folder__is_refused(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  strcpy(exported + sizeof exported - 7, "XXXXXX");
  assert_non_null(mkdtemp(exported));
  const std::string file = std::string(exported) + "/precious";
  fclose(fopen(file.c_str(), "w"));
  OwnedFd folder(open(exported, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  assert_false(link->export_tree(folder.get(), problem));
  assert_int_equal(problem.error, ENOTEMPTY);
  assert_int_equal(access(file.c_str(), F_OK), 0);
  folder.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  assert_false(link->export_tree(folder.get(), problem));
  assert_int_equal(problem.error, ENOTDIR);
  tests::run((std::string("rm -r ") + exported).c_str());
}

}  // namespace

int main() {
  tests::need_new_namespace();
  if (mkdtemp(place) == nullptr) return 1;
  setenv("XDG_RUNTIME_DIR", place, 1);
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__asked_for_the_tree__hands_over_its_folder),
      cmocka_unit_test(dappled__address_comes__is_in_the_tree),
      cmocka_unit_test(dappled__netdev_comes_and_goes__has_a_folder),
      cmocka_unit_test(dappled__device_counts__counters_follow),
      cmocka_unit_test(dappled__paths_out_of_the_tree__show_nothing),
      cmocka_unit_test(dappled__is_killed__next_one_removes_its_folder),
      cmocka_unit_test(dappled__folder_is_taken_away__makes_another),
      cmocka_unit_test(dappled__no_place_can_be_written__names_them),
      cmocka_unit_test(dappled__exports__keeps_the_folder_up_to_date),
      cmocka_unit_test(dappled__foreign_folder__is_refused),
  };
  const int failed = cmocka_run_group_tests(all, nullptr, nullptr);
  tests::ends_soon();
  rmdir(place);
  return failed;
}
