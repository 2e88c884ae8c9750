// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/persistence.hpp"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/coherence/check.hpp"

#include <initializer_list>
#include <iterator>

namespace {

using namespace dapple::coherence;

// A folder that looks like a machine's root, with some regions of persistent memory. Ends the program if it cannot make
// one.
class Root {
 public:
  Root() {
    if (mkdtemp(path_) == nullptr) abort();
  }
  ~Root() { nftw(path_, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const char* path() const { return path_; }
  // Null text: a region without the file.
  void add(const char* device, const char* text) const {
    char place[512];
    size_t length = static_cast<size_t>(snprintf(place, sizeof(place), "%s", path_));
    for (const char* folder : {"sys", "bus", "nd", "devices", device}) {
      length += static_cast<size_t>(snprintf(place + length, sizeof(place) - length, "/%s", folder));
      mkdir(place, 0755);
    }
    if (text == nullptr) return;
    snprintf(place + length, sizeof(place) - length, "/persistence_domain");
    FILE* const file = fopen(place, "w");
    if (file == nullptr || fputs(text, file) < 0 || fclose(file) != 0) abort();
  }

 private:
  static int remove_entry(const char* path, const struct stat*, int, struct FTW*) { return remove(path); }
  char path_[64] = "/tmp/dapple-persistence.XXXXXX";
};

void no_regions__no_persistent_memory() {
  const Root root;
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kNone);
  root.add("ndbus0", nullptr);
  root.add("namespace0.0", "cpu_cache\n");
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kNone);
}

void each_word__has_its_domain() {
  const struct {
    const char* text;
    PersistenceDomain domain;
  } words[] = {
      {"cpu_cache\n", PersistenceDomain::kCpuCaches},
      {"cpu_cache", PersistenceDomain::kCpuCaches},
      {"memory_controller\n", PersistenceDomain::kMemoryController},
      {"\n", PersistenceDomain::kUnspecified},
      {"", PersistenceDomain::kUnspecified},
      {"cpu_cache_of_another_kind_that_is_longer_than_the_buffer\n", PersistenceDomain::kUnspecified},
      {"CPU_CACHE\n", PersistenceDomain::kUnspecified},
  };
  for (const auto& word : words) {
    const Root root;
    root.add("region0", word.text);
    CHECK(read_persistence_domain(root.path()) == word.domain);
  }
}

void region_without_the_file__is_unspecified() {
  const Root root;
  root.add("region0", "cpu_cache\n");
  root.add("region1", nullptr);
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kUnspecified);
}

void several_regions__the_weakest_counts() {
  const Root root;
  root.add("region0", "cpu_cache\n");
  root.add("region1", "cpu_cache\n");
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kCpuCaches);
  root.add("region10", "memory_controller\n");
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kMemoryController);
  root.add("region2", "\n");
  CHECK(read_persistence_domain(root.path()) == PersistenceDomain::kUnspecified);
}

void root_that_is_too_long_or_not_there__no_persistent_memory() {
  static char root[8192];
  memset(root, '/', sizeof(root) - 1);
  CHECK(read_persistence_domain(root) == PersistenceDomain::kNone);
  CHECK(read_persistence_domain("/nowhere") == PersistenceDomain::kNone);
}

void decide__each_domain_with_and_without_an_instruction() {
  CpuDescription with = {};
  with.can_persist = true;
  with.persist_instruction = "clwb";
  CpuDescription without = {};
  without.persist_instruction = "none";
  const struct {
    PersistenceDomain domain;
    bool possible_with;
    bool possible_without;
    const char* instruction_with;
  } cases[] = {
      {PersistenceDomain::kNone, true, false, "clwb"},
      {PersistenceDomain::kUnspecified, false, false, "none"},
      {PersistenceDomain::kMemoryController, true, false, "clwb"},
      {PersistenceDomain::kCpuCaches, true, true, "none"},
  };
  for (const auto& each : cases) {
    const Persistence a = decide_persistence(with, each.domain);
    const Persistence b = decide_persistence(without, each.domain);
    CHECK(a.domain == each.domain && b.domain == each.domain);
    CHECK(a.possible == each.possible_with && b.possible == each.possible_without);
    CHECK(strcmp(a.instruction, each.instruction_with) == 0 && strcmp(b.instruction, "none") == 0);
    CHECK(a.caches_are_persistent == (each.domain == PersistenceDomain::kCpuCaches));
  }
}

size_t persisted_bytes = 0;

void persist__leaves_persistent_caches_alone() {
  BackEnd back_end = {};
  back_end.cpu.can_persist = true;
  back_end.persist_range = [](uint32_t, const void*, size_t length) noexcept { persisted_bytes += length; };
  char bytes[8] = {};
  persisted_bytes = 0;
  persist(back_end, decide_persistence(back_end.cpu, PersistenceDomain::kCpuCaches), bytes, sizeof(bytes));
  CHECK(persisted_bytes == 0);
  persist(back_end, decide_persistence(back_end.cpu, PersistenceDomain::kMemoryController), bytes, sizeof(bytes));
  CHECK(persisted_bytes == sizeof(bytes));
}

void this_machine__is_decided_once() {
  const Persistence& persistence = machine_persistence();
  CHECK(&persistence == &machine_persistence());
  CHECK(persistence.domain == read_persistence_domain(""));
  printf("       possible %d, caches persistent %d, instruction %s\n", persistence.possible,
         persistence.caches_are_persistent, persistence.instruction);
}

constexpr dapple::test::Test kTests[] = {
    {"no_regions__no_persistent_memory", no_regions__no_persistent_memory},
    {"each_word__has_its_domain", each_word__has_its_domain},
    {"region_without_the_file__is_unspecified", region_without_the_file__is_unspecified},
    {"several_regions__the_weakest_counts", several_regions__the_weakest_counts},
    {"root_that_is_too_long_or_not_there__no_persistent_memory",
     root_that_is_too_long_or_not_there__no_persistent_memory},
    {"decide__each_domain_with_and_without_an_instruction", decide__each_domain_with_and_without_an_instruction},
    {"persist__leaves_persistent_caches_alone", persist__leaves_persistent_caches_alone},
    {"this_machine__is_decided_once", this_machine__is_decided_once},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
