// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/libraries_found.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>

#include "tools/dapple-run/doctor/runner.hpp"

namespace dapple::run::doctor {
namespace {

// An upper bound far above today's 65. Rdma-core 36, the oldest that serves, has 34.
constexpr unsigned kMaxPrivateAbi = 200, kFirstPrivateAbi = 34;

// The number N of IBVERBS_PRIVATE_N; 0 if the library has none.
unsigned private_abi_of(void* library) {
  for (unsigned number = kMaxPrivateAbi; number > 0; --number) {
    const std::string version = "IBVERBS_PRIVATE_" + std::to_string(number);
    if (dlvsym(library, "verbs_set_ops", version.c_str()) != nullptr) return number;
    if (dlvsym(library, "verbs_register_driver", version.c_str()) != nullptr) return number;
  }
  return 0;
}

// The release in the file's name, which is libibverbs.so.1.ABI.RELEASE; empty if the name has another form.
std::string release_of(const std::string& path) {
  constexpr std::string_view kStem = "libibverbs.so.1.";
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename().string();
  if (error || !name.starts_with(kStem)) return {};
  const size_t dot = name.find('.', kStem.size());
  return dot == name.npos ? std::string() : name.substr(dot + 1);
}

Line missing_libibverbs() {
  return {
      Verdict::kFails, "libibverbs",
      "libibverbs.so.1 is not here: install rdma-core's libraries (Debian: apt install ibverbs-providers); programs "
      "with their own copy do not need it"};
}

}  // namespace

Line own_files(const Libraries& libraries) {
  Line line{Verdict::kWorks, "dapple", {}};
  for (const std::string& file : {libraries.doors.file, libraries.heap.file, libraries.plugin.file + "-rdmav34.so"}) {
    if (access(file.c_str(), R_OK) == 0) continue;
    return {Verdict::kFails, "dapple", file + " is missing: unpack or install dapple again"};
  }
  const std::string folder = libraries.overlay.file.substr(0, libraries.overlay.file.rfind('/'));
  line.text = DAPPLE_VERSION ", with its libraries in " + folder;
  if (const std::string other = other_copy_in_environment(libraries); !other.empty()) {
    line.verdict = Verdict::kPartly;
    line.text += "; the environment names another copy, " + other +
                 ", which dapple-run replaces: programs that this shell starts without dapple-run get the other one";
  }
  if (const std::string lost = variables_not_passed_on(); !lost.empty()) {
    line.verdict = Verdict::kPartly;
    line.text +=
        "; " + lost +
        ": let it pass on LD_PRELOAD, RDMAV_DRIVERS, ASAN_OPTIONS and DAPPLE_*, or let it start dapple-run PROGRAM";
  }
  return line;
}

Line libibverbs(const Libraries& libraries) {
  void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return missing_libibverbs();
  Line line{Verdict::kWorks, "libibverbs", {}};
  // Not the place of one of its functions, which a preloaded library of dapple may have, too.
  link_map* loaded = nullptr;
  const bool has_path = dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && loaded->l_name[0] != '\0';
  const std::string path = has_path ? loaded->l_name : "libibverbs.so.1";
  const unsigned number = private_abi_of(library);
  const std::string release = release_of(path);
  line.text = (release.empty() ? std::string("rdma-core") : "rdma-core " + release) + ", " + path;
  // Rdma-core 34 and 35 have the number, and lack this function.
  if (number < kFirstPrivateAbi || dlsym(library, "ibv_query_qp_data_in_order") == nullptr) {
    line.verdict = Verdict::kFails;
    line.text += ": too old; the device needs the libibverbs of rdma-core 36 or later";
  } else if (access((libraries.plugin.file + "-rdmav" + std::to_string(number) + ".so").c_str(), R_OK) != 0) {
    line.verdict = Verdict::kFails;
    line.text += ": its private interface " + std::to_string(number) + " is newer than this dapple: get a newer dapple";
  }
  // The library stays loaded: some have destructors that expect the end of the process.
  return line;
}

}  // namespace dapple::run::doctor
