// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/libraries.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

// Relative to this program's folder, in a build and installed: the libraries, and the same folder by way of $LIB.
struct LibraryFolder {
  const char* folder;
  const char* by_loader;
};
constexpr LibraryFolder kLibraryFolders[] = {{"../lib/dapple", "../$LIB/dapple"},
                                             {DAPPLE_PRELOAD_FOLDER, DAPPLE_PRELOAD_BY_LOADER}};

// ThreadSanitizer's own limit on x86-64 and arm64.
constexpr int kMaxRandomBits = 28;

std::string resolved(const std::string& path) {
  char bytes[PATH_MAX];
  return realpath(path.c_str(), bytes) != nullptr ? bytes : "";
}

std::string own_folder() {
  std::string own = resolved("/proc/self/exe");
  // Without /proc: the name by which it was executed.
  if (own.empty()) own = resolved(reinterpret_cast<const char*>(getauxval(AT_EXECFN)));
  return own.substr(0, own.rfind('/'));
}

// True if the word is in a list.
bool has_word(std::string_view list, std::string_view word, std::string_view separators) {
  while (!list.empty()) {
    const size_t end = list.find_first_of(separators);
    if (list.substr(0, end) == word) return true;
    if (end == list.npos) return false;
    list.remove_prefix(end + 1);
  }
  return false;
}

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// True if this system's loader finds the file; it is not loaded.
bool loader_finds(const std::string& word) {
  dlerror();
  void* library = dlopen(word.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr || dlerror() == nullptr;
}

void put_first(const char* variable, const std::string& word, std::string_view separators) {
  const std::string list = environment(variable);
  if (has_word(list, word, separators)) return;
  setenv(variable, (list.empty() ? word : word + ":" + list).c_str(), 1);
}

// Takes out the words for which `unwanted` is true. The other words keep their order and, if the list does not change,
// their separators.
template <typename Unwanted>
void take_out_if(const char* variable, std::string_view separators, const Unwanted& unwanted) {
  const std::string list = environment(variable);
  std::string rest;
  bool changed = false;
  std::string_view words = list;
  while (!words.empty()) {
    const size_t end = words.find_first_of(separators);
    const std::string_view each = words.substr(0, end);
    words.remove_prefix(end == words.npos ? words.size() : end + 1);
    const bool out = unwanted(each);
    changed = changed || out;
    if (!each.empty() && !out) rest.append(rest.empty() ? "" : ":").append(each);
  }
  if (!changed) return;
  if (rest.empty()) {
    unsetenv(variable);
  } else {
    setenv(variable, rest.c_str(), 1);
  }
}

// The words of LD_PRELOAD, and of RDMAV_DRIVERS.
constexpr std::string_view kPreloadSeparators = ": ", kDriverSeparators = ":;";

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// A library of another copy of dapple, of perhaps another version. Two copies in one program disturb each other.
bool is_other_copy(std::string_view word, const Library& library) {
  return word.find('/') != word.npos && name_of(word) == name_of(library.file) && word != library.word &&
         word != library.file;
}

void put_first(const char* variable, const Library& library, std::string_view separators) {
  take_out_if(variable, separators, [&](std::string_view word) { return is_other_copy(word, library); });
  if (!has_word(environment(variable), library.file, separators)) put_first(variable, library.word, separators);
}

void take_out(const char* variable, const Library& library, std::string_view separators) {
  take_out_if(variable, separators, [&](std::string_view word) {
    return word == library.word || word == library.file || is_other_copy(word, library);
  });
}

// Sets the option, whose name ends with "=", unless the variable has it.
void set_sanitizer(const char* variable, const char* option, const char* value) {
  const std::string options = environment(variable);
  if (options.find(option) != options.npos) return;
  setenv(variable, (options.empty() ? "" : options + ":").append(option).append(value).c_str(), 1);
}

}  // namespace

Libraries find_libraries() {
  const std::string own = own_folder();
  for (const LibraryFolder& each : kLibraryFolders) {
    const std::string overlay = resolved(own + "/" + each.folder + "/libdapple-preload.so");
    if (overlay.empty()) continue;
    // The loader replaces $LIB and $ORIGIN.
    if (overlay.find_first_of(": $") != overlay.npos) {
      fail(kCannotRun, "LD_PRELOAD cannot name %s: move it to a path without blanks, colons and $", overlay.c_str());
    }
    if (overlay.find(';') != overlay.npos)
      fail(kCannotRun, "RDMAV_DRIVERS cannot name %s: move it to a path without semicolons", overlay.c_str());
    const std::string folder = overlay.substr(0, overlay.rfind('/') + 1);
    struct statvfs mount;
    if (statvfs(overlay.c_str(), &mount) == 0 && (mount.f_flag & ST_NOEXEC) != 0)
      fail(kCannotRun, "%s is on a file system that is mounted noexec: unpack dapple elsewhere", folder.c_str());
    std::string by_loader = std::filesystem::path(own + "/" + each.by_loader + "/").lexically_normal().string();
    if (!loader_finds(by_loader + "libdapple-preload.so")) by_loader = folder;
    const auto library = [&](const char* name) -> Library { return {folder + name, by_loader + name}; };
    return {.overlay = library("libdapple-preload.so"),
            .doors = library("libdapple-doors.so"),
            .heap = library("libdapple-heap.so"),
            .plugin = library("libdapple")};
  }
  fail(kCannotRun,
       "%s/dapple-run has no libdapple-preload.so in its lib folders: leave dapple-run where it was unpacked or "
       "installed, "
       "and make a symbolic link to it; in a build tree: cmake --build --preset release",
       own.c_str());
}

std::string other_copy_in_environment(const Libraries& libraries) {
  std::string found;
  const auto look = [&](const char* variable, const Library& library, std::string_view separators) {
    const std::string list = environment(variable);
    for (std::string_view words = list; !words.empty();) {
      const size_t end = words.find_first_of(separators);
      if (found.empty() && is_other_copy(words.substr(0, end), library)) found = words.substr(0, end);
      words.remove_prefix(end == words.npos ? words.size() : end + 1);
    }
  };
  look("LD_PRELOAD", libraries.doors, kPreloadSeparators);
  look("LD_PRELOAD", libraries.overlay, kPreloadSeparators);
  look("RDMAV_DRIVERS", libraries.plugin, kDriverSeparators);
  return found;
}

void name_by_file(Libraries& libraries) {
  for (Library* each : {&libraries.overlay, &libraries.doors, &libraries.heap, &libraries.plugin})
    each->word = each->file;
}

void preload(const Libraries& libraries, bool device) {
  if (device) {
    if (access(libraries.doors.file.c_str(), R_OK) != 0) {
      fail(kCannotRun, "%s is missing; --no-device runs without it", libraries.doors.file.c_str());
    }
    put_first("LD_PRELOAD", libraries.doors, kPreloadSeparators);
    put_first("RDMAV_DRIVERS", libraries.plugin, kDriverSeparators);
  } else {
    // An image or a shell may have set these.
    take_out("LD_PRELOAD", libraries.doors, kPreloadSeparators);
    take_out("RDMAV_DRIVERS", libraries.plugin, kDriverSeparators);
  }
  put_first("LD_PRELOAD", libraries.overlay, kPreloadSeparators);
}

void preload_heap(const Libraries& libraries, bool wanted) {
  if (!wanted) return take_out("LD_PRELOAD", libraries.heap, kPreloadSeparators);
  if (access(libraries.heap.file.c_str(), R_OK) != 0) fail(kCannotRun, "%s is missing", libraries.heap.file.c_str());
  put_first("LD_PRELOAD", libraries.heap, kPreloadSeparators);
}

void let_address_sanitizer_come_later() {
  set_sanitizer("ASAN_OPTIONS", "verify_asan_link_order=", "0");
}

void preload_sanitizer(const char* runtime) {
  put_first("LD_PRELOAD", std::string(runtime), kPreloadSeparators);
  set_sanitizer("ASAN_OPTIONS", "detect_leaks=", "0");
  set_sanitizer("TSAN_OPTIONS", "ignore_noninstrumented_modules=", "1");
  set_sanitizer("TSAN_OPTIONS", "die_after_fork=", "0");
}

void prepare_for_thread_sanitizer(const std::string& program) {
  // It takes the word before a library's thread-local memory for its size, and clears as much. For libdw, which the
  // check loads, this word may be anything.
  set_sanitizer("TSAN_OPTIONS", "intercept_tls_get_addr=", "0");
  const int now = personality(0xFFFFFFFF);
  if (now != -1 && personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) != -1) return;
  int bits = 0;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/sys/vm/mmap_rnd_bits", "re"), fclose);
  if (file == nullptr || fscanf(file.get(), "%d", &bits) != 1 || bits <= kMaxRandomBits) return;
  say("%s is built with ThreadSanitizer, which may fail with this machine's random addresses, and the system does not "
      "let dapple-run turn address randomization off: sysctl vm.mmap_rnd_bits=%d helps",
      program.c_str(), kMaxRandomBits);
}

}  // namespace dapple::run
