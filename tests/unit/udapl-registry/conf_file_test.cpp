// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/conf_file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/scratch.hpp"

using namespace dapple::registry;

namespace {

constexpr const char* kLine = " u2.0 nonthreadsafe default lib.so dapl.2.0 \"\" \"\"\n";

struct Fixture {
  TemporaryFolder folder;
  std::string first = folder.write("first", std::string("first") + kLine);
  std::string second = folder.write("second", std::string("second") + kLine);
  std::string missing = folder.path() + "/missing";
};

/// The names found, the output without the folder's name, and the path likewise.
void expect(const Fixture& fixture, const ConfSearch& search, const std::string& names, const std::string& printed,
            const std::string& path) {
  const auto shorten = [&](std::string text) {
    for (std::size_t at; (at = text.find(fixture.folder.path() + "/")) != text.npos;)
      text.erase(at, fixture.folder.path().size() + 1);
    return text;
  };
  std::string found_names, found_printed, found_path;
  {
    CapturedStderr captured;
    const Configuration found = load_configuration(search, {2});
    for (const ConfEntry& entry : found.entries) found_names += entry.ia_name + " ";
    found_printed = shorten(captured.text());
    found_path = shorten(found.path);
  }
  CHECK_EQUAL(found_names, names.c_str());
  CHECK_EQUAL(found_printed, printed.c_str());
  CHECK_EQUAL(found_path, path.c_str());
}

void load_configuration__override_wins() {
  const Fixture f;
  expect(f, {f.second.c_str(), {f.first}}, "second ", "", "second");
}

void load_configuration__bad_override_has_no_fallback() {
  const Fixture f;
  expect(f, {f.missing.c_str(), {f.first}}, "", "dat: DAT_OVERRIDE names missing: No such file or directory\n",
         "missing");
  expect(f, {"", {f.first}}, "", "dat: DAT_OVERRIDE names : No such file or directory\n", "");
}

void load_configuration__first_that_can_be_read() {
  const Fixture f;
  expect(f, {nullptr, {f.first, f.second}}, "first ", "", "first");
  expect(f, {nullptr, {f.missing, f.second}}, "second ", "", "second");
}

void load_configuration__none_is_fine() {
  const Fixture f;
  expect(f, {nullptr, {f.missing, f.missing + "2"}}, "", "", "");
}

void load_configuration__directory_is_no_file() {
  const Fixture f;
  const std::string folder = f.folder.path() + "/.";
  expect(f, {folder.c_str(), {}}, "", "dat: DAT_OVERRIDE names .: Is a directory\n", ".");
  expect(f, {nullptr, {folder, f.second}}, "second ", "dat: .: Is a directory\n", "second");
}

void load_configuration__empty_file_has_no_entries() {
  const Fixture f;
  const std::string empty = f.folder.write("empty", "");
  expect(f, {nullptr, {empty, f.second}}, "", "", "empty");
}

void load_configuration__endless_file_is_refused() {
  const Fixture f;
  expect(f, {"/dev/zero", {}}, "", "dat: DAT_OVERRIDE names /dev/zero: File too large\n", "/dev/zero");
}

/// A named pipe, with the bytes that its writer has written so far.
struct Pipe {
  explicit Pipe(const std::string& content) {
    CHECK_EQUAL(::pipe(ends), 0);
    CHECK_EQUAL(::write(ends[1], content.data(), content.size()), static_cast<ssize_t>(content.size()));
    name = "/dev/fd/" + std::to_string(ends[0]);
  }
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  int ends[2] = {-1, -1};
  std::string name;
};

void load_configuration__pipe_is_read_to_its_end() {
  const Fixture f;
  Pipe pipe(std::string("piped") + kLine);
  pipe.close_writer();
  expect(f, {pipe.name.c_str(), {}}, "piped ", "", pipe.name);
}

void load_configuration__pipe_is_waited_for() {
  const Fixture f;
  Pipe pipe(std::string("early") + kLine);
  const std::string late = std::string("late") + kLine;
  const pid_t child = ::fork();
  if (child == 0) {
    ::usleep(100'000);
    ::_exit(::write(pipe.ends[1], late.data(), late.size()) == static_cast<ssize_t>(late.size()) ? 0 : 1);
  }
  pipe.close_writer();
  expect(f, {pipe.name.c_str(), {}}, "early late ", "", pipe.name);
  ::waitpid(child, nullptr, 0);
}

void load_configuration__pipe_that_nobody_closes_is_given_up() {
  const Fixture f;
  const Pipe pipe(std::string("half") + kLine);
  expect(f, {pipe.name.c_str(), {}}, "",
         "dat: DAT_OVERRIDE names " + pipe.name + ": Resource temporarily unavailable\n", pipe.name);
}

void load_configuration__pipe_without_a_writer_is_empty() {
  const Fixture f;
  const std::string fifo = f.folder.path() + "/fifo";
  CHECK_EQUAL(::mkfifo(fifo.c_str(), 0600), 0);
  expect(f, {fifo.c_str(), {}}, "", "", "fifo");
  expect(f, {nullptr, {fifo, f.second}}, "", "", "fifo");
}

void load_configuration__bad_line_is_reported_once_with_file_and_line() {
  const Fixture f;
  const std::string path = f.folder.write("bad", std::string("a") + kLine + "\nb u2.0 maybe\nc" + kLine);
  expect(f, {nullptr, {path}}, "a c ", "dat: bad:3: 3 of 8 fields: no default section; line ignored\n", "bad");
}

/// Runs a body in a child as nobody; returns its exit status.
int as_nobody(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(65534) == 0 && ::setuid(65534) == 0 ? body() : 99);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

void load_configuration__unreadable_file_is_said_and_passed_over() {
  const Fixture f;
  ::chmod(f.folder.path().c_str(), 0755);
  ::chmod(f.first.c_str(), 0);
  const auto body = [&] {
    CapturedStderr captured;
    const Configuration found = load_configuration({nullptr, {f.first, f.second}}, {2});
    return found.path == f.second && captured.text() == "dat: " + f.first + ": Permission denied\n" ? 0 : 1;
  };
  CHECK_EQUAL(::geteuid() == 0 ? as_nobody(body) : body(), 0);
}

void default_search__override_and_two_places() {
  ::setenv("DAT_OVERRIDE", "/some/where", 1);
  CHECK_EQUAL(std::string(default_search().override_path), "/some/where");
  ::unsetenv("DAT_OVERRIDE");
  CHECK(default_search().override_path == nullptr);
  CHECK_EQUAL(default_search().paths.back(), "/etc/dat.conf");
}

void default_search__setuid_program_ignores_the_override() {
  if (::geteuid() != 0) {
    print_message("SKIP: only root can make a setuid program for somebody else\n");
    test_skipped = true;
    return;
  }
  const Fixture f;
  const std::string program = f.folder.path() + "/show";
  const std::string output = f.folder.write("output", "");
  std::filesystem::copy_file(SHOW_SEARCH, program);
  ::chmod(f.folder.path().c_str(), 0755);
  ::chmod(output.c_str(), 0666);
  ::setenv("DAT_OVERRIDE", "/evil", 1);
  const auto first_line = [&] {
    char line[256] = "";
    FILE* file = std::fopen(output.c_str(), "r");
    if (!file || !std::fgets(line, sizeof line, file)) line[0] = '\0';
    if (file) std::fclose(file);
    return std::string(line);
  };
  const std::string command = program + " > " + output;

  ::chmod(program.c_str(), 0755);
  const int plain = as_nobody([&] { return std::system(command.c_str()) == 0 ? 0 : 1; });
  const std::string plain_line = first_line();
  ::chmod(program.c_str(), 04755);
  const int setuid = as_nobody([&] { return std::system(command.c_str()) == 0 ? 0 : 1; });
  const std::string setuid_line = first_line();
  ::unsetenv("DAT_OVERRIDE");

  CHECK_EQUAL(plain, 0);
  CHECK_EQUAL(plain_line, "/evil\n");
  CHECK_EQUAL(setuid, 0);
  CHECK_EQUAL(setuid_line, "no override\n");
}

}  // namespace

int main() {
  ::unsetenv("DAT_OVERRIDE");
  const CMUnitTest tests[] = {
      TEST(load_configuration__override_wins),
      TEST(load_configuration__bad_override_has_no_fallback),
      TEST(load_configuration__first_that_can_be_read),
      TEST(load_configuration__none_is_fine),
      TEST(load_configuration__directory_is_no_file),
      TEST(load_configuration__empty_file_has_no_entries),
      TEST(load_configuration__endless_file_is_refused),
      TEST(load_configuration__pipe_is_read_to_its_end),
      TEST(load_configuration__pipe_is_waited_for),
      TEST(load_configuration__pipe_that_nobody_closes_is_given_up),
      TEST(load_configuration__pipe_without_a_writer_is_empty),
      TEST(load_configuration__bad_line_is_reported_once_with_file_and_line),
      TEST(load_configuration__unreadable_file_is_said_and_passed_over),
      TEST(default_search__override_and_two_places),
      TEST(default_search__setuid_program_ignores_the_override),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
