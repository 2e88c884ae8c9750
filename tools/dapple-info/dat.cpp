// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/dat.hpp"

#include <dat2/dat_registry.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <sstream>

#include "tools/dapple-info/child.hpp"
#include "tools/dapple-info/dead_lines.hpp"
#include "tools/report/table.hpp"
#include "udapl/registry/configuration/automatic_entries.hpp"
#include "udapl/registry/configuration/conf_file.hpp"

namespace dapple::info {
namespace {

constexpr int kListTimeout_ms = 10'000;
constexpr int kOpenTimeout_ms = 20'000;
constexpr DAT_COUNT kMaxEntries = 256;
constexpr DAT_COUNT kQlen = 8;

void write_all(int out, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = write(out, text.data() + at, text.size() - at);
    if (put <= 0) return;
    at += static_cast<size_t>(put);
  }
}

// A mark between the registry's messages about other lines and those about the entry that is tried.
constexpr char kMark = '\f';

// The text after the mark, in one line: the provider names the cause, the registry names the result.
std::string said_of_entry(const std::string& text) {
  const size_t mark = text.find(kMark);
  std::istringstream lines(mark == std::string::npos ? text : text.substr(mark + 1));
  std::string said;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) said += (said.empty() ? "" : "; ") + line;
  }
  return said;
}

// The registry's functions, in the child that loaded it. 1.2 and 2.0 have the same functions here.
struct Registry {
  decltype(&dat_registry_list_providers) list = nullptr;
  decltype(&dat_ia_openv) open = nullptr;
  decltype(&dat_ia_close) close = nullptr;
  decltype(&dat_strerror) strerror = nullptr;

  // An error message; empty on success.
  std::string load(const std::string& name) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) return dlerror();
    list = reinterpret_cast<decltype(list)>(dlsym(library, "dat_registry_list_providers"));
    open = reinterpret_cast<decltype(open)>(dlsym(library, "dat_ia_openv"));
    close = reinterpret_cast<decltype(close)>(dlsym(library, "dat_ia_close"));
    strerror = reinterpret_cast<decltype(strerror)>(dlsym(library, "dat_strerror"));
    return is_complete() ? "" : name + " is not a registry of DAT";
  }

  bool is_complete() const { return list && open && close && strerror; }

  std::string describe(DAT_RETURN status) const {
    const char* major = nullptr;
    const char* minor = nullptr;
    if (strerror(status, &major, &minor) != DAT_SUCCESS || !major) return fmt::format("error {:#x}", status);
    return minor && *minor ? fmt::format("{}, {}", major, minor) : major;
  }

  std::vector<DAT_PROVIDER_INFO> providers(std::string& problem) const {
    std::vector<DAT_PROVIDER_INFO> infos(kMaxEntries);
    std::vector<DAT_PROVIDER_INFO*> pointers;
    pointers.reserve(infos.size());
    for (DAT_PROVIDER_INFO& info : infos) pointers.push_back(&info);
    DAT_COUNT count = 0;
    const DAT_RETURN status = list(kMaxEntries, &count, pointers.data());
    if (status != DAT_SUCCESS) problem = describe(status);
    infos.resize(status == DAT_SUCCESS ? static_cast<size_t>(count) : 0);
    return infos;
  }
};

// The answers of children are lines: "problem TEXT", "entry MAJOR MINOR SAFETY NAME", "file PATH", "open".
void list_in_child(const std::string& name, int out) {
  Registry registry;
  std::string problem = registry.load(name);
  if (registry.is_complete()) {
    for (const DAT_PROVIDER_INFO& info : registry.providers(problem)) {
      write_all(out, fmt::format("entry {} {} {} {}\n", info.dapl_version_major, info.dapl_version_minor,
                                 info.is_thread_safe != DAT_FALSE ? 1 : 0, info.ia_name));
    }
  }
  if (!problem.empty()) write_all(out, "problem " + problem + "\n");
}

// The path under which the loader finds a library of that name; empty if it finds none.
std::string file_of(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY);
  const link_map* map = nullptr;
  if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  char real[PATH_MAX];
  return realpath(map->l_name, real) ? real : map->l_name;
}

void open_in_child(const std::string& registry_name, const DatEntry& entry, int out) {
  Registry registry;
  const std::string problem = registry.load(registry_name);
  if (!registry.is_complete()) return write_all(out, "problem " + problem + "\n");
  // This makes the registry print its messages about other lines.
  std::string ignored;
  (void)registry.providers(ignored);
  if (!entry.library.empty()) write_all(out, "file " + file_of(entry.library) + "\n");
  write_all(STDERR_FILENO, {kMark});
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  std::array<char, DAT_NAME_MAX_LENGTH> name{};
  entry.name.copy(name.data(), name.size() - 1);
  const DAT_RETURN status = registry.open(name.data(), kQlen, &async, &ia, entry.major, entry.minor,
                                          entry.thread_safe ? DAT_TRUE : DAT_FALSE);
  if (status != DAT_SUCCESS) return write_all(out, "problem " + registry.describe(status) + "\n");
  // For an automatic entry the registry may have loaded the library of its own folder. The loader finds that one now.
  if (!entry.library.empty()) write_all(out, "file " + file_of(entry.library) + "\n");
  write_all(out, "open\n");
  (void)registry.close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

void try_entry(const std::string& registry, DatEntry& entry) {
  const ChildResult result = run_in_child([&](int out) { open_in_child(registry, entry, out); }, kOpenTimeout_ms);
  std::istringstream answer(result.out);
  for (std::string line; std::getline(answer, line);) {
    if (line == "open") entry.opens = true;
    if (line.starts_with("problem ")) entry.why = line.substr(8);
    if (line.starts_with("file ") && line.size() > 5) entry.library = line.substr(5);
  }
  if (!result.failure.empty()) {
    entry.why = result.failure;
    entry.opens = false;
  }
  // The provider or the registry has printed the reason; programs see only the code.
  const std::string said = said_of_entry(result.err);
  if (!entry.opens && !said.empty()) entry.why = said + (entry.why.empty() ? "" : " (" + entry.why + ")");
  if (entry.opens) entry.why.clear();
}

bool is_entry_of(const DatEntry& entry, const registry::ConfEntry& line) {
  return line.ia_name == entry.name && line.api.major == entry.major && line.api.minor == entry.minor &&
         line.is_thread_safe == entry.thread_safe;
}

DatEntry entry_of(const registry::ConfEntry& line, const std::string& path) {
  DatEntry entry;
  entry.name = line.ia_name;
  entry.major = line.api.major;
  entry.minor = line.api.minor;
  entry.thread_safe = line.is_thread_safe;
  entry.from = fmt::format("{}:{}", path, line.line);
  entry.library = line.library;
  entry.params = line.ia_params;
  return entry;
}

std::vector<DatEntry> listed_by(const std::string& registry, std::string& problem) {
  std::vector<DatEntry> entries;
  const ChildResult result = run_in_child([&](int out) { list_in_child(registry, out); }, kListTimeout_ms);
  problem = result.failure;
  std::istringstream answer(result.out);
  for (std::string line; std::getline(answer, line);) {
    std::istringstream words(line);
    std::string keyword;
    DatEntry entry;
    words >> keyword;
    if (keyword == "problem") {
      problem = line.substr(8);
    } else if (words >> entry.major >> entry.minor >> entry.thread_safe && std::getline(words >> std::ws, entry.name)) {
      entry.from = "automatic";
      entries.push_back(entry);
    }
  }
  return entries;
}

// The 2.0 registry does not search the last place of the 1.2 registry.
bool is_read_by_20(const std::string& path) {
  const registry::ConfSearch search = registry::default_search();
  return search.override_path || std::find(search.paths.begin(), search.paths.end(), path) != search.paths.end();
}

void add_automatic(const DatRegistry& registry, std::vector<DatEntry>& offered, const registry::AutomaticStyle& style,
                   DatReport& report) {
  const std::vector<registry::AutomaticEntry> made = registry::automatic_entries(registry::rdma_ports(), {}, style);
  for (DatEntry& entry : offered) {
    // The registry reports only the name; `made` are the automatic entries that it can have here.
    for (const registry::AutomaticEntry& candidate : made) {
      if (!is_entry_of(entry, candidate.entry)) continue;
      entry.library = candidate.entry.library;
      entry.params = candidate.entry.ia_params;
    }
    try_entry(registry.library, entry);
    report.entries.push_back(std::move(entry));
  }
}

}  // namespace

DatReport read_dat(const std::string& registry, const std::string& registry12, bool all) {
  DatReport report{{registry, {}}, {registry12, {}}, {}, {}};
  const registry::Configuration configuration =
      registry::load_configuration(registry::default_search({registry::kFurtherPath12}), {1, 2});
  report.conf_path = configuration.path;
  std::vector<DatEntry> offered20 = listed_by(registry, report.registry.problem);
  std::vector<DatEntry> offered12 = listed_by(registry12, report.registry12.problem);
  const std::vector<std::string> here = names_here();

  // The lines in the file's order, each with its result; then the entries without a line.
  for (const registry::ConfEntry& line : configuration.entries) {
    DatEntry entry = entry_of(line, configuration.path);
    const DatRegistry& asked = line.api.major == 1 ? report.registry12 : report.registry;
    std::vector<DatEntry>& offered = line.api.major == 1 ? offered12 : offered20;
    const auto found =
        std::find_if(offered.begin(), offered.end(), [&](const DatEntry& e) { return is_entry_of(e, line); });
    entry.is_dead = !all && is_dead(line, here);
    if (entry.is_dead) {
      entry.why = "not tried: this machine lacks the device";
      if (found != offered.end()) offered.erase(found);
    } else if (line.api.major != 1 && !is_read_by_20(configuration.path)) {
      entry.why = "not offered: DAT 2.0 does not look into this file";
    } else if (!line.is_default) {
      entry.why = "not offered: the line says nondefault";
    } else if (!asked.problem.empty()) {
      entry.why = "not tried: there is no registry";
    } else if (found == offered.end()) {
      entry.why = "not offered again: an earlier line has the same name, version and thread safety";
    } else {
      try_entry(asked.library, entry);
      offered.erase(found);
    }
    report.entries.push_back(std::move(entry));
  }
  add_automatic(report.registry, offered20, registry::kAutomatic20, report);
  add_automatic(report.registry12, offered12, registry::kAutomatic12, report);
  return report;
}

std::string dat_for_people(const DatReport& report) {
  std::string text = report.conf_path.empty() ? "No dat.conf was found" : "dat.conf: " + report.conf_path;
  text += "; registries: " + report.registry.library + ", " + report.registry12.library + "\n";
  const auto complain = [&text](const DatRegistry& registry) {
    if (!registry.problem.empty()) text += "The registry cannot be used: " + registry.problem + "\n";
  };
  complain(report.registry);
  // A machine without 1.2 programs may lack the 1.2 registry.
  const auto is_of_12 = [](const DatEntry& entry) { return entry.major == 1; };
  if (std::any_of(report.entries.begin(), report.entries.end(), is_of_12)) complain(report.registry12);
  const auto is_dead = [](const DatEntry& entry) { return entry.is_dead; };
  const auto dead = static_cast<size_t>(std::count_if(report.entries.begin(), report.entries.end(), is_dead));
  const std::string folded =
      dead == 0
          ? ""
          : fmt::format("{} name{} not here; --all shows {}\n", dead == 1 ? "1 line" : fmt::format("{} lines", dead),
                        dead == 1 ? "s a device that is" : " devices that are", dead == 1 ? "it" : "them");
  if (dead == report.entries.size()) {
    return text + folded +
           "There is no provider of uDAPL: no line of a dat.conf, and no active RDMA port whose network device has "
           "an address. A line like this makes one, for the network device "
           "d0 of an RDMA device:\n"
           "  my-ia u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"d0 0\" \"\"\n"
           "Without an RDMA device, 'dapple-run dapple-info --dat' shows the providers of the software device.\n";
  }
  std::vector<std::vector<std::string>> rows{{"NAME", "API", "THREADS", "FROM", "LIBRARY", "PARAMETERS", "OPENS"}};
  for (const DatEntry& entry : report.entries) {
    if (entry.is_dead) continue;
    rows.push_back({entry.name, fmt::format("{}.{}", entry.major, entry.minor), entry.thread_safe ? "safe" : "unsafe",
                    entry.from, entry.library, entry.params, entry.opens ? "yes" : "no: " + entry.why});
  }
  return text + format_table(rows) + folded;
}

Json dat_as_json(const DatReport& report) {
  Json entries = Json::array();
  for (const DatEntry& entry : report.entries) {
    entries.push_back({{"name", entry.name},
                       {"api", fmt::format("{}.{}", entry.major, entry.minor)},
                       {"thread_safe", entry.thread_safe},
                       {"from", entry.from},
                       {"library", entry.library},
                       {"params", entry.params},
                       {"opens", entry.opens},
                       {"tried", !entry.is_dead},
                       {"why", text_or_null(entry.why)}});
  }
  return {{"conf", report.conf_path},
          {"registry", report.registry.library},
          {"registry12", report.registry12.library},
          {"problem", text_or_null(report.registry.problem)},
          {"problem12", text_or_null(report.registry12.problem)},
          {"entries", entries}};
}

}  // namespace dapple::info
