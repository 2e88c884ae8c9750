// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of the running CPU, executed over real memory, with every choice of instructions that the CPU has.
//
// Arguments, for runs under an emulator whose CPU is known:
//   line_size=N             what the CPU must report
//   refused                 the CPU must say that it cannot, and why
//   block_size=N            riscv64: Zicbom with this block, whatever the kernel says
//   persist=WORD            the instruction for persistence must be of this name, "dc" left out: cvap, none
//   persist=unimplemented   the emulator announces one and has none
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <iterator>

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"
#include "tests/unit/coherence/check.hpp"
#if defined(__x86_64__)
#include "coherence/x86_64.hpp"
#elif defined(__aarch64__)
#include "coherence/arm64.hpp"
#elif defined(__riscv)
#include "coherence/riscv64.hpp"
#elif defined(__powerpc64__)
#include "coherence/ppc64le.hpp"
#endif

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::cpu_back_end;
using dapple::coherence::is_power_of_two;

long expected_line_size_bytes = 0;
long riscv64_block_size_bytes = 0;
bool expect_refusal = false;
bool may_execute_persist = true;
const char* expected_persist = nullptr;

struct Choices {
  std::array<BackEnd, 8> at = {};
  size_t count = 0;
};

// The CPU's own operations, also without its newer instructions and with other strides: a stride smaller than the line
// repeats lines, a larger one skips some; neither may change the contents of memory. Empty if the CPU refuses.
Choices every_choice() {
  Choices choices;
  if (cpu_back_end().cpu.can_clean) choices.at[choices.count++] = cpu_back_end();
#if defined(__x86_64__)
  using dapple::coherence::x86_64::choose;
  using dapple::coherence::x86_64::Features;
  const Features cpu = dapple::coherence::x86_64::read_features();
  if (cpu.clflush) choices.at[choices.count++] = choose({true, false, false, cpu.line_size_bytes});
  if (cpu.clflushopt) choices.at[choices.count++] = choose({cpu.clflush, true, false, cpu.line_size_bytes});
  if (cpu.clwb) choices.at[choices.count++] = choose({cpu.clflush, false, true, cpu.line_size_bytes});
  choices.at[choices.count++] = choose({cpu.clflush, cpu.clflushopt, cpu.clwb, 32});
  choices.at[choices.count++] = choose({cpu.clflush, cpu.clflushopt, cpu.clwb, 128});
#elif defined(__aarch64__)
  using dapple::coherence::arm64::choose;
  using dapple::coherence::arm64::PersistencePoint;
  const PersistencePoint cpu = dapple::coherence::arm64::read_persistence_point();
  choices.at[choices.count++] = choose({16, 128}, PersistencePoint::kNone);
  choices.at[choices.count++] = choose({128, 128}, cpu);
  // A CPU with the deep instruction has the other one.
  if (cpu != PersistencePoint::kNone) choices.at[choices.count++] = choose({64, 64}, PersistencePoint::kPersistence);
#elif defined(__riscv)
  using dapple::coherence::riscv64::choose;
  if (riscv64_block_size_bytes != 0) {
    choices.at[choices.count++] = choose({true, true, static_cast<uint32_t>(riscv64_block_size_bytes)});
    choices.at[choices.count++] = choose({true, true, 0});
  }
#elif defined(__powerpc64__)
  using dapple::coherence::ppc64le::choose;
  choices.at[choices.count++] = choose({32, false});
  choices.at[choices.count++] = choose({256, dapple::coherence::ppc64le::read_features().persistence});
#endif
  return choices;
}

// Three pages, of which only the middle one may be touched. Ends the program without memory.
class GuardedPage {
 public:
  GuardedPage() : page_size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* const base = mmap(nullptr, 3 * page_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) abort();
    base_ = static_cast<unsigned char*>(base);
    if (mprotect(base_ + page_size_, page_size_, PROT_READ | PROT_WRITE) != 0) abort();
  }
  ~GuardedPage() { munmap(base_, 3 * page_size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  unsigned char* begin() const { return base_ + page_size_; }
  unsigned char* end() const { return base_ + 2 * page_size_; }
  size_t size() const { return page_size_; }

 private:
  size_t page_size_;
  unsigned char* base_;
};

void fill(const GuardedPage& page, unsigned seed) {
  for (size_t i = 0; i < page.size(); ++i) page.begin()[i] = static_cast<unsigned char>(i * 7 + i / 256 + seed);
}

bool is_filled(const GuardedPage& page, unsigned seed) {
  for (size_t i = 0; i < page.size(); ++i) {
    if (page.begin()[i] != static_cast<unsigned char>(i * 7 + i / 256 + seed)) return false;
  }
  return true;
}

// The first of the tests, because only the first call asks the system.
void first_call__keeps_errno() {
  errno = ENOTTY;
  (void)cpu_back_end();
  CHECK(errno == ENOTTY);
}

void description__is_complete() {
  const BackEnd& back_end = cpu_back_end();
  printf("       %s: clean %s, clean + invalidate %s, completion %s, line %u, granule %u\n", back_end.cpu.architecture,
         back_end.cpu.clean_instruction, back_end.cpu.clean_invalidate_instruction, back_end.cpu.completion_instruction,
         back_end.cpu.line_size_bytes, back_end.cpu.writeback_granule_bytes);
  printf("       persist %s%s%s\n", back_end.cpu.persist_instruction,
         back_end.cpu.refusal != nullptr ? "; refused: " : "",
         back_end.cpu.refusal != nullptr ? back_end.cpu.refusal : "");
  CHECK(&back_end == &cpu_back_end());
  CHECK(is_power_of_two(back_end.cpu.line_size_bytes));
  CHECK(is_power_of_two(back_end.cpu.writeback_granule_bytes));
  CHECK(back_end.cpu.writeback_granule_bytes >= back_end.cpu.line_size_bytes);
  if (expected_line_size_bytes != 0) {
    CHECK(back_end.cpu.line_size_bytes == static_cast<unsigned long>(expected_line_size_bytes));
  }
  const bool can = back_end.cpu.can_clean && back_end.cpu.can_clean_invalidate;
  CHECK(can == (back_end.cpu.refusal == nullptr));
  CHECK(back_end.cpu.can_clean == (back_end.clean_range != nullptr));
  CHECK(back_end.cpu.can_clean_invalidate == (back_end.clean_invalidate_range != nullptr));
  CHECK(back_end.cpu.can_persist == (back_end.persist_range != nullptr));
  CHECK(back_end.cpu.can_persist == (strcmp(back_end.cpu.persist_instruction, "none") != 0));
  CHECK(can != expect_refusal);
  if (expected_persist != nullptr) {
    const char* const last_blank = strrchr(back_end.cpu.persist_instruction, ' ');
    CHECK(strcmp(last_blank != nullptr ? last_blank + 1 : back_end.cpu.persist_instruction, expected_persist) == 0);
  }
#if defined(__aarch64__)
  CHECK(strcmp(back_end.cpu.architecture, "arm64") == 0);
#elif defined(__x86_64__)
  CHECK(strcmp(back_end.cpu.architecture, "x86-64") == 0);
#elif defined(__riscv)
  CHECK(strcmp(back_end.cpu.architecture, "riscv64") == 0);
#elif defined(__powerpc64__)
  CHECK(strcmp(back_end.cpu.architecture, "ppc64le") == 0);
#endif
}

void fences__can_be_called() {
  const BackEnd& back_end = cpu_back_end();
  back_end.order_before_device_reads();
  back_end.order_after_device_writes();
  back_end.order_before_maintenance();
  back_end.complete_maintenance();
  back_end.full_barrier();
  if (may_execute_persist) back_end.complete_persistence();
}

void operations__leave_data_unchanged() {
  const GuardedPage page;
  const Choices choices = every_choice();
  if (choices.count == 0) SKIP("nothing to execute: the CPU refuses");
  const size_t size = page.size();
  const struct {
    size_t offset;
    size_t length;
  } ranges[] = {{0, size},        {0, 0},  {size, 0}, {0, 1},   {size - 1, 1},
                {1, size - 2},    {63, 2}, {31, 66},  {64, 64}, {size / 2 - 1, size / 2 + 1},
                {size - 129, 129}};
  unsigned seed = 1;
  for (size_t i = 0; i < choices.count; ++i) {
    const BackEnd& back_end = choices.at[i];
    for (const auto& range : ranges) {
      fill(page, ++seed);
      back_end.clean(page.begin() + range.offset, range.length);
      back_end.complete_maintenance();
      CHECK(is_filled(page, seed));

      fill(page, ++seed);
      back_end.order_before_maintenance();
      back_end.clean_invalidate(page.begin() + range.offset, range.length);
      back_end.complete_maintenance();
      CHECK(is_filled(page, seed));

      if (!back_end.cpu.can_persist || !may_execute_persist) continue;
      fill(page, ++seed);
      back_end.persist(page.begin() + range.offset, range.length);
      back_end.complete_persistence();
      CHECK(is_filled(page, seed));
    }
    back_end.order_before_device_reads();
    back_end.order_after_device_writes();
    back_end.full_barrier();
    CHECK(is_filled(page, seed));
  }
}

void persistence__is_executed() {
  if (!may_execute_persist) {
    SKIP("this emulator announces it and has no such instruction");
  } else if (!cpu_back_end().cpu.can_persist) {
    SKIP("the CPU has no instruction for it");
  } else {
    const GuardedPage page;
    fill(page, 5);
    cpu_back_end().persist(page.begin(), page.size());
    cpu_back_end().complete_persistence();
    CHECK(is_filled(page, 5));
  }
}

void read_only_memory__can_be_maintained() {
  const GuardedPage page;
  fill(page, 3);
  CHECK(mprotect(page.begin(), page.size(), PROT_READ) == 0);
  const Choices choices = every_choice();
  if (choices.count == 0) SKIP("nothing to execute: the CPU refuses");
  for (size_t i = 0; i < choices.count; ++i) {
    choices.at[i].clean(page.begin(), page.size());
    choices.at[i].clean_invalidate(page.begin(), page.size());
    choices.at[i].complete_maintenance();
  }
  CHECK(is_filled(page, 3));
}

#if defined(__x86_64__)
// x86 maintenance of an unreadable page faults, which shows the touched lines. (qemu's user mode ignores arm64's
// instructions, so there the disassembly test must suffice.)
sigjmp_buf fault_jump;

void on_fault(int) {
  siglongjmp(fault_jump, 1);
}

bool faults(const BackEnd& back_end, BackEnd::RangeOperation operation, const void* address, size_t length) {
  volatile bool faulted = true;
  if (sigsetjmp(fault_jump, 1) == 0) {
    operation(back_end.cpu.line_size_bytes, address, length);
    faulted = false;
  }
  return faulted;
}

void lines__are_touched_inside_the_range_and_nowhere_else() {
  const GuardedPage page;
  struct sigaction action = {};
  action.sa_handler = on_fault;
  struct sigaction saved;
  sigaction(SIGSEGV, &action, &saved);

  const Choices choices = every_choice();
  for (size_t i = 0; i < choices.count; ++i) {
    const BackEnd& back_end = choices.at[i];
    for (BackEnd::RangeOperation operation :
         {back_end.clean_range, back_end.clean_invalidate_range, back_end.persist_range}) {
      CHECK(!faults(back_end, operation, page.begin(), page.size()));
      CHECK(!faults(back_end, operation, page.end() - 1, 1));
      CHECK(!faults(back_end, operation, page.begin() - 1, 0));
      CHECK(!faults(back_end, operation, page.end(), 0));
      CHECK(faults(back_end, operation, page.begin() - 1, 1));
      CHECK(faults(back_end, operation, page.end(), 1));
      CHECK(faults(back_end, operation, page.begin(), page.size() + 1));
      CHECK(faults(back_end, operation, page.begin() - 1, page.size()));
    }
  }
  sigaction(SIGSEGV, &saved, nullptr);
}
#endif

constexpr dapple::test::Test kTests[] = {
    {"first_call__keeps_errno", first_call__keeps_errno},
    {"description__is_complete", description__is_complete},
    {"fences__can_be_called", fences__can_be_called},
    {"operations__leave_data_unchanged", operations__leave_data_unchanged},
    {"persistence__is_executed", persistence__is_executed},
    {"read_only_memory__can_be_maintained", read_only_memory__can_be_maintained},
#if defined(__x86_64__)
    {"lines__are_touched_inside_the_range_and_nowhere_else", lines__are_touched_inside_the_range_and_nowhere_else},
#endif
};

// Parses NAME=N into *number; false if the argument is another one, or if N is not a positive number.
bool read_number(const char* argument, const char* name, long* number) {
  const size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0 || argument[length] != '=') return false;
  *number = strtol(argument + length + 1, nullptr, 10);
  return *number > 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "refused") == 0) {
      expect_refusal = true;
    } else if (strcmp(argv[i], "persist=unimplemented") == 0) {
      may_execute_persist = false;
    } else if (strncmp(argv[i], "persist=", 8) == 0) {
      expected_persist = argv[i] + 8;
    } else if (!read_number(argv[i], "line_size", &expected_line_size_bytes) &&
               !read_number(argv[i], "block_size", &riscv64_block_size_bytes)) {
      return 2;
    }
  }
  return dapple::test::run_all(kTests, std::size(kTests));
}
