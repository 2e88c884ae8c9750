// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/trees/private_folder.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "provider/face/writer.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/refused_call.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

char place[] = "/tmp/dapple-place-test-XXXXXX";

int start(void**) {
  strcpy(place + sizeof place - 7, "XXXXXX");
  return mkdtemp(place) == nullptr ? 1 : 0;
}

int end(void**) {
  return face::remove_whole(AT_FDCWD, place);
}

int entries() {
  int count = 0;
  DIR* stream = opendir(place);
  while (readdir(stream) != nullptr) count++;
  closedir(stream);
  return count - 2;
}

void make__place__has_a_new_folder(void**) {
  PrivateFolder folder;
  assert_int_equal(folder.make(place), 0);
  assert_int_equal(access(folder.path().c_str(), F_OK), 0);
  assert_non_null(strstr(folder.path().c_str(), "/dapple-face-"));
  folder.remove();
  assert_int_equal(entries(), 0);
}

void make__others_live__leaves_their_folders(void**) {
  PrivateFolder first, second;
  assert_int_equal(first.make(place), 0);
  assert_int_equal(second.make(place), 0);
  assert_int_equal(entries(), 2);
}

void make__owner_was_killed__removes_its_folder(void**) {
  const pid_t child = fork();
  if (child == 0) {
    static PrivateFolder folder;
    _exit(folder.make(place) == 0 && mkdirat(folder.fd(), "sys", 0755) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  assert_int_equal(entries(), 1);
  PrivateFolder folder;
  assert_int_equal(folder.make(place), 0);
  assert_int_equal(entries(), 1);
}

// A descriptor that another process got keeps no lock.
void reopen__owner_ends__folder_is_free(void**) {
  soft::OwnedFd other;
  {
    PrivateFolder folder;
    assert_int_equal(folder.make(place), 0);
    other = folder.reopen();
    assert_true(static_cast<bool>(other));
  }
  assert_int_equal(entries(), 0);
}

void make__place_is_a_file_or_absent__fails(void**) {
  PrivateFolder folder;
  assert_int_equal(folder.make(std::string(place) + "/absent"), ENOENT);
  assert_int_equal(folder.make("/dev/null"), ENOTDIR);
}

// In a child, because a filter stays. Exits with 77 if the kernel has no such filters.
int make_without_lock(int error) {
  const pid_t child = fork();
  if (child == 0) {
    if (!tests::refuse_call(SYS_flock, error)) _exit(77);
    PrivateFolder folder;
    _exit(folder.make(place));
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void make__lock_is_refused__leaves_no_folder(void**) {
  for (const int error : {EPERM, ENOSYS, ENOLCK}) {
    const int got = make_without_lock(error);
    if (got == 77) skip();
    assert_int_equal(got, error);
    assert_int_equal(entries(), 0);
  }
}

void of_this_process__foreign_runtime_folder__is_not_used(void**) {
  setenv("XDG_RUNTIME_DIR", place, 1);
  assert_string_equal(ParentFolders::of_this_process().names[0].c_str(), place);
  setenv("XDG_RUNTIME_DIR", "relative", 1);
  assert_string_not_equal(ParentFolders::of_this_process().names[0].c_str(), "relative");
  unsetenv("XDG_RUNTIME_DIR");
}

void of_this_process__others__memory_comes_before_disks(void**) {
  unsetenv("XDG_RUNTIME_DIR");
  const ParentFolders places = ParentFolders::of_this_process();
  bool was_on_disk = false;
  for (int i = 0; i < places.count; i++) {
    struct statfs status;
    if (statfs(places.names[i] == "/run/dapple" ? "/run" : places.names[i].c_str(), &status) != 0) continue;
    const bool is_on_disk = status.f_type != TMPFS_MAGIC;
    assert_true(is_on_disk || !was_on_disk);
    was_on_disk = is_on_disk;
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(make__place__has_a_new_folder, start, end),
      cmocka_unit_test_setup_teardown(make__others_live__leaves_their_folders, start, end),
      cmocka_unit_test_setup_teardown(make__owner_was_killed__removes_its_folder, start, end),
      cmocka_unit_test_setup_teardown(reopen__owner_ends__folder_is_free, start, end),
      cmocka_unit_test_setup_teardown(make__lock_is_refused__leaves_no_folder, start, end),
      cmocka_unit_test_setup_teardown(make__place_is_a_file_or_absent__fails, start, end),
      cmocka_unit_test_setup_teardown(of_this_process__foreign_runtime_folder__is_not_used, start, end),
      cmocka_unit_test(of_this_process__others__memory_comes_before_disks),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
