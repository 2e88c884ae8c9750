// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/libibverbs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <infiniband/dappledv.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace dapple::info {
namespace {

namespace fs = std::filesystem;

// An upper bound far above today's 65.
constexpr unsigned int kMaxPrivateAbi = 200;

unsigned int private_abi_of(void* library) {
  for (unsigned int number = kMaxPrivateAbi; number > 0; --number) {
    if (dlvsym(library, "verbs_set_ops", fmt::format("IBVERBS_PRIVATE_{}", number).c_str())) return number;
  }
  return 0;
}

void add_if_foreign(Libibverbs& library, const std::string& name) {
  const unsigned int number = driver_abi(name);
  if (number != 0 && number != library.private_abi) library.foreign_drivers.push_back(name);
}

// The name with the value of $LIB, for which the loader gives no function: libibverbs is in the folder of that name.
std::string without_lib(const Libibverbs& library, std::string name) {
  constexpr std::string_view kLib = "$LIB";
  std::string folder = fs::path(library.path).parent_path().string();
  for (const std::string_view parent : {"/usr/", "/"}) {
    if (!folder.starts_with(parent)) continue;
    folder.erase(0, parent.size());
    break;
  }
  if (const size_t at = name.find(kLib); at != name.npos) name.replace(at, kLib.size(), folder);
  return name;
}

// The name comes without -rdmavN.so. Looks for the file that libibverbs would load, and, if it is missing, for files
// with another N.
void look_for(Libibverbs& library, const std::string& name) {
  const fs::path stem(name);
  std::error_code error;
  if (!stem.is_absolute() || fs::exists(fmt::format("{}-rdmav{}.so", name, library.private_abi), error)) return;
  for (const auto& entry : fs::directory_iterator(stem.parent_path(), error)) {
    const std::string file = entry.path().filename();
    if (file.starts_with(stem.filename().string() + "-rdmav")) add_if_foreign(library, file);
  }
}

void look_at_environment(Libibverbs& library) {
  const char* names = std::getenv("RDMAV_DRIVERS");
  if (!names) names = std::getenv("IBV_DRIVERS");
  std::string list(names ? names : "");
  std::replace(list.begin(), list.end(), ';', ':');
  std::istringstream each(list);
  for (std::string name; std::getline(each, name, ':');) look_for(library, without_lib(library, name));
}

// Parses lines "driver NAME"; the name is a path if the driver is not in libibverbs' own folder.
void look_at_configuration(Libibverbs& library) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/etc/libibverbs.d", error)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string directive, name;
      if (words >> directive >> name && directive == "driver") look_for(library, name);
    }
  }
}

}  // namespace

unsigned int driver_abi(const std::string& name) {
  constexpr const char* kMark = "-rdmav";
  const size_t at = name.rfind(kMark);
  if (!name.starts_with("lib") || !name.ends_with(".so") || at == std::string::npos) return 0;
  const std::string digits = name.substr(at + 6, name.size() - at - 9);
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return static_cast<unsigned int>(std::strtoul(digits.c_str(), nullptr, 10));
}

Libibverbs read_libibverbs() {
  Libibverbs library;
  void* handle = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  Dl_info place{};
  // Under dapple-run other functions are those of its libraries.
  void* function = handle ? dlsym(handle, "ibv_query_device") : nullptr;
  if (function && dladdr(function, &place) && place.dli_fname) library.path = place.dli_fname;
  if (handle) library.private_abi = private_abi_of(handle);
  if (const char* obstacle = dappledv_attach_obstacle(nullptr)) library.overlay_problem = obstacle;

  std::error_code error;
  const fs::path folder = fs::path(library.path).parent_path() / "libibverbs";
  for (const auto& entry : fs::directory_iterator(folder, error)) add_if_foreign(library, entry.path().filename());
  look_at_environment(library);
  look_at_configuration(library);
  std::vector<std::string>& foreign = library.foreign_drivers;
  std::sort(foreign.begin(), foreign.end());
  foreign.erase(std::unique(foreign.begin(), foreign.end()), foreign.end());
  if (handle) dlclose(handle);
  return library;
}

std::string libibverbs_for_people(const Libibverbs& library) {
  std::string text;
  if (!library.overlay_problem.empty()) {
    text += fmt::format("dapple-run and dappledv_attach() cannot work with {}: {}\n", library.path,
                        library.overlay_problem);
  }
  for (const std::string& driver : library.foreign_drivers) {
    text +=
        fmt::format("The driver library {} is for another libibverbs, which looks for names with -rdmav{}.so here\n",
                    driver, library.private_abi);
  }
  return text;
}

Json libibverbs_as_json(const Libibverbs& library) {
  return {{"path", library.path},
          {"private_abi", library.private_abi},
          {"overlay_problem", text_or_null(library.overlay_problem)},
          {"foreign_drivers", library.foreign_drivers}};
}

}  // namespace dapple::info
