// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/run.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/sim/threads/kernel.hpp"
#include "tests/sim/threads/source_lines.hpp"

namespace dapple::sim {
namespace {

// Seconds for one run, which takes less than one on an idle machine: of a processor for one that turns without end, and
// of the clock for one that sleeps, because other programs may use the processor.
constexpr rlim_t kPatience = 60;
constexpr unsigned kPatienceAsleep = 3600;

SimulatedKernel* the_kernel;
Machine* the_machine;

class RealHost final : public Host {
 public:
  void fail(const char* format, ...) override {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    the_machine->fail("%s", text);
  }
  void note(const char* format, ...) override {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    the_machine->note("%s", text);
  }
  uint64_t now() override { return the_machine->scheduler.now(); }
  uint64_t below(uint64_t count) override { return the_machine->random.below(count); }
  void name(const void* begin, size_t size, const char* text) override { the_machine->name(begin, size, text); }
  void spawn(const char* name, int process, void (*run)(void*), void* argument) override {
    the_machine->spawn(name, static_cast<uint32_t>(process), [run, argument] { run(argument); });
  }
  void become_service() override { the_machine->scheduler.thread(the_machine->self()).is_service = true; }
  void await_all() override {
    the_machine->scheduler.await_all();
    for (uint32_t i = 0; i < the_machine->scheduler.count(); i++)
      if (the_machine->scheduler.thread(i).ended) the_machine->memory.join(the_machine->self(), i);
  }
  void set(uint32_t number, uint64_t value) override {
    the_machine->point();
    numbers_[number].value = value;
    the_machine->memory.release(the_machine->self(), numbers_[number].knowledge);
  }
  uint64_t add(uint32_t number, uint64_t value) override {
    the_machine->point();
    const uint64_t sum = get(number) + value;
    numbers_[number].value = sum;
    the_machine->memory.release(the_machine->self(), numbers_[number].knowledge);
    return sum;
  }
  uint64_t get(uint32_t number) override {
    the_machine->memory.acquire(the_machine->self(), numbers_[number].knowledge);
    return numbers_[number].value;
  }
  void await(uint32_t number, uint64_t least) override {
    the_machine->scheduler.wait([&] { return numbers_[number].value >= least; }, kNever, "another thread");
    the_machine->memory.now = the_machine->scheduler.now();
    get(number);
  }
  void forbid(const void* begin, size_t size, bool forbidden) override { the_kernel->forbid(begin, size, forbidden); }
  void progress() override { the_kernel->progress(); }
  void limit_pauses(uint64_t longest) override {
    the_machine->scheduler.limit_pauses(longest);
    the_kernel->keep_membarrier();
  }
  void have_membarrier() override { the_kernel->have_membarrier(); }
  void set_limit(uint64_t steps) override { the_machine->set_limit(steps); }

 private:
  struct Number {
    uint64_t value = 0;
    Knowledge knowledge;
  };
  std::map<uint32_t, Number> numbers_;
};

RealHost host;

struct Loaded {
  Module* module;
  uint64_t base, size;
};

Loaded load(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "sim-threads: %s\n", dlerror());
    exit(2);
  }
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  struct Search {
    uint64_t base, size;
  } search = {map->l_addr, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto& wanted = *static_cast<Search*>(argument);
        if (info->dlpi_addr != wanted.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; i++)
          if (info->dlpi_phdr[i].p_type == PT_LOAD)
            wanted.size = std::max<uint64_t>(wanted.size, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
        return 1;
      },
      &search);
  const auto describe = reinterpret_cast<Module* (*)()>(dlsym(library, "sim_module"));
  return {describe(), search.base, search.size};
}

// The loader takes a file for the same library if it has the same inode.
std::string copy_of(const std::string& file) {
  char name[] = "/tmp/sim-module-XXXXXX";
  const int to = mkstemp(name);
  FILE* from = fopen(file.c_str(), "rb");
  char buffer[1 << 16];
  for (size_t size; (size = fread(buffer, 1, sizeof buffer, from)) > 0;)
    if (::write(to, buffer, size) != static_cast<ssize_t>(size)) exit(2);
  fclose(from);
  close(to);
  return name;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Kernel* sim_kernel() {
  return the_kernel;
}
extern "C" __attribute__((visibility("default"))) Host* sim_host() {
  return &host;
}

Modules::Modules(const std::string& file) {
  // Static constructors call the kernel, too.
  static Verdict ignored;
  static Machine machine({.verdict = &ignored});
  static SimulatedKernel kernel(machine);
  the_machine = &machine;
  the_kernel = &kernel;
  const Loaded own = load(file);
  const std::string copy = copy_of(file);
  const Loaded peer = load(copy);
  unlink(copy.c_str());
  module_ = own.module;
  module_->peer = peer.module;
  base_ = own.base;
  size_ = own.size;
  peer_base_ = peer.base;
  set_module_file(file);
}

Verdict run_seed(const Modules& modules, const Scenario& scenario, uint64_t seed, const Options& options) {
  static auto* const shared =
      static_cast<Verdict*>(mmap(nullptr, sizeof(Verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *shared = {};
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {kPatience, RLIM_INFINITY};
    setrlimit(RLIMIT_CPU, &limit);
    alarm(kPatienceAsleep);
    static Machine machine({.seed = seed,
                            .verbose = options.verbose,
                            .verdict = shared,
                            .sites = options.sites,
                            .weakened = options.weakened,
                            .weaker = options.weaker,
                            .base = modules.base(),
                            .base_size = modules.size(),
                            .second_base = modules.peer_base()});
    static SimulatedKernel kernel(machine);
    the_machine = &machine;
    the_kernel = &kernel;
    scenario.run(scenario.argument);
    machine.succeed();
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
  Verdict verdict = *shared;
  if (!verdict.failed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    verdict.failed = true;
    snprintf(verdict.reason, sizeof verdict.reason, "the program ends by signal %d (%s)", WTERMSIG(status),
             WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
  }
  return verdict;
}

}  // namespace dapple::sim
