// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Profiles in files: dapple's, which must all be right, and one's own.
#include "provider/face/identity/profile_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;

namespace {

// A folder for this process' files.
char folder[] = "/tmp/dapple-profiles-XXXXXX";

std::string write_file(const char* name, const std::string& text) {
  const std::string path = std::string(folder) + "/" + name;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  close(file);
  return path;
}

bool read(const std::string& spec, face::Identity& identity, soft::Problem& problem,
          int file = face::ProfileFiles::kOpenPaths) {
  face::ProfileFiles files(file);
  problem.clear();
  return face::read_identity(spec, files, identity, problem);
}

void profiles__of_dapple__are_right(void**) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DAPPLE_PROFILES)) {
    face::Identity identity;
    soft::Problem problem;
    if (!read(entry.path().string(), identity, problem)) fail_msg("%s", problem.line);
    const std::string name = entry.path().stem().string();
    assert_string_equal(identity.attributes.profile, name.c_str());
    assert_true(identity.attributes.vendor_id != soft::DeviceAttributes{}.vendor_id);
    assert_int_equal(identity.attributes.has_pci != 0, name != "rxe");
    count++;
  }
  assert_int_equal(count, 8);
}

void read__own_file__has_its_values(void**) {
  const std::string path = write_file("own.profile", "max_sge = 1\n");
  face::Identity identity;
  soft::Problem problem;
  assert_true(read(path, identity, problem));
  assert_int_equal(identity.attributes.max_send_sge, 1);
  assert_string_equal(identity.attributes.profile, "own");
  // The file that another process has opened counts, not the one of that path.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  assert_true(read("/nowhere/card,rate=10", identity, problem, file));
  assert_int_equal(identity.attributes.max_send_sge, 1);
  assert_int_equal(identity.attributes.active_speed, 4);
  close(file);
}

void read__files_that_are_none__one_line(void**) {
  const std::string fifo = std::string(folder) + "/fifo";
  mkfifo(fifo.c_str(), 0600);
  const std::string too_long = write_file("long", std::string(face::kMaxProfile + 1, '\n'));
  const std::string longest = write_file("longest", std::string(face::kMaxProfile, '\n'));
  const std::string program = "/proc/self/exe";
  const std::string here = std::string(folder) + "/";
  const struct {
    std::string path;
    std::string line;
  } cases[] = {
      {here + "none", "the profile " + here + "none cannot be read: No such file or directory"},
      {here, "the profile " + here + " is no regular file"},
      {fifo, "the profile " + fifo + " is no regular file"},
      {"/dev/zero", "the profile /dev/zero is no regular file"},
      {too_long, "the profile " + too_long + " has more than 65536 bytes"},
      {longest, ""},
  };
  for (const auto& each : cases) {
    face::Identity identity;
    soft::Problem problem;
    assert_int_equal(read(each.path, identity, problem), each.line.empty());
    assert_string_equal(problem.line, each.line.c_str());
  }
  face::Identity identity;
  soft::Problem problem;
  assert_false(read(program, identity, problem));
  assert_true(problem.error == EFBIG || problem.error == EINVAL);
  // dappled reads no file of its own for a program.
  assert_false(read(longest, identity, problem, face::ProfileFiles::kNoPaths));
  assert_int_equal(problem.error, EACCES);
}

void read__names_that_are_none__one_line(void**) {
  for (const char* name : {"connect x7", "../../etc/passwd", "..", "connectx7.profile"}) {
    face::Identity identity;
    soft::Problem problem;
    assert_false(read(name, identity, problem));
    assert_true(problem.error != 0 && problem.line[0] != '\0');
  }
}

int make_folder(void**) {
  return mkdtemp(folder) != nullptr ? 0 : -1;
}

int remove_folder(void**) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return 0;
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(profiles__of_dapple__are_right),
      cmocka_unit_test(read__own_file__has_its_values),
      cmocka_unit_test(read__files_that_are_none__one_line),
      cmocka_unit_test(read__names_that_are_none__one_line),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
