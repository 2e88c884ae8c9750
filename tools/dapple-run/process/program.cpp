// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/program.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "tools/dapple-run/process/elf_file.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

bool is_program(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The word sets a shell's variable.
bool is_assignment(std::string_view word) {
  const size_t end = word.find('=');
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return end != word.npos && end > 0 && kDigits.find(word[0]) == kDigits.npos &&
         word.substr(0, end).find_first_not_of(kLetters) == word.npos;
}

[[noreturn]] void fail_not_found(const char* const* command) {
  const char* const name = command[0];
  if (*name == '\0') fail(kNoSuchProgram, "the name of the program is empty");
  if (is_assignment(name)) {
    std::string words;
    for (; *command != nullptr && is_assignment(*command); ++command) words += std::string(*command) + " ";
    fail(kNoSuchProgram, "%s is no program; a variable stands before dapple-run: %sdapple-run %s", name, words.c_str(),
         *command != nullptr ? *command : "PROGRAM");
  }
  const std::string here = std::string("./") + name;
  if (is_program(here)) {
    fail(kNoSuchProgram, "there is no program %s in PATH, but one in this folder: dapple-run %s", name, here.c_str());
  }
  fail(kNoSuchProgram, "there is no program %s in PATH", name);
}

std::string path_of(const char* const* command) {
  std::string given = command[0];
  if (given.find('/') != given.npos && !(is_assignment(given) && !is_program(given))) return given;
  const char* path = getenv("PATH");
  std::string_view folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (;;) {
    const size_t end = folders.find(':');
    const std::string folder(folders.substr(0, end));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + given;
    if (is_program(candidate)) return candidate;
    if (end == folders.npos) fail_not_found(command);
    folders.remove_prefix(end + 1);
  }
}

// These programs, most of which are setuid, start another one, with an environment that lacks LD_PRELOAD. root's own
// environment is cleaned, too.
void check_starter(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name != "sudo" && name != "doas" && name != "pkexec" && name != "run0") return;
  // The PATH of the other user may not have dapple-run.
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  fail(kCannotRun, "%s does not pass LD_PRELOAD to its program; put %s first: %s %s PROGRAM", name.c_str(),
       name.c_str(), name.c_str(), error ? "dapple-run" : own.c_str());
}

// The loader ignores LD_PRELOAD in a program with more rights than its caller.
void check_rights(const char* path, const struct stat& status) {
  if (getuid() != 0 && getxattr(path, "security.capability", nullptr, 0) > 0) {
    fail(kCannotRun, "%s has file capabilities: the system loads no library into it", path);
  }
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) {
    fail(kCannotRun, "%s is setuid: the system loads no library into it", path);
  }
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) {
    fail(kCannotRun, "%s is setgid: the system loads no library into it", path);
  }
}

// Both files exist where they can be compared.
bool has_loader_of(const ElfFile& own, std::string_view loader) {
  std::error_code error;
  return own.loader().empty() || own.loader() == loader || std::filesystem::equivalent(own.loader(), loader, error);
}

void check_file(const std::string& path, const ElfFile& library, bool follow_script, Program& program) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return;
  check_rights(path.c_str(), status);
  // A file that is executable but not readable is not examined.
  const ElfFile file(path);
  if (const std::string_view interpreter = file.script_interpreter(); !interpreter.empty()) {
    if (follow_script) check_file(std::string(interpreter), library, false, program);
    return;
  }
  if (!file.is_elf()) return;
  if (!file.same_architecture(library)) {
    fail(kCannotRun, "%s is built for another architecture than dapple", path.c_str());
  }
  const std::string_view loader = file.loader();
  if (loader.empty()) program.obstacle = path + " is statically linked: no library can be loaded into it";
  if (loader.find("musl") != loader.npos) {
    program.has_other_c_library = true;
    program.obstacle = path + " is built for the C library musl, and dapple for the GNU C library";
  }
  if (!program.obstacle.empty()) return;
  program.has_usual_loader = has_loader_of(ElfFile("/proc/self/exe"), loader);
  program.has_address_sanitizer = file.names("libasan.so.") || file.names("__asan_init");
  program.has_thread_sanitizer = file.names("libtsan.so.") || file.names("__tsan_init");
  program.has_own_heap = program.has_address_sanitizer || program.has_thread_sanitizer || file.names("__msan_init") ||
                         file.names("__hwasan_init") || file.names("liblsan.so.") || file.names("__lsan_init");
}

}  // namespace

Program find_program(const char* const* command, const std::string& library) {
  Program program;
  program.path = path_of(command);
  const char* path = program.path.c_str();
  struct stat status;
  if (stat(path, &status) != 0) fail(kNoSuchProgram, "%s does not exist", path);
  if (S_ISDIR(status.st_mode)) fail(kCannotRun, "%s is a folder", path);
  if (access(path, X_OK) != 0) fail(kCannotRun, "%s is not executable", path);
  check_starter(program.path);
  const ElfFile own(library);
  if (own.error() != 0) fail(kCannotRun, "%s cannot be read: %s", library.c_str(), strerror(own.error()));
  check_file(program.path, own, true, program);
  return program;
}

}  // namespace dapple::run
