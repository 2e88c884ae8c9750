// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of the running CPU, executed over real memory. On x86-64 with every choice of instructions that the
// CPU has.
//
// An argument "line_size=N" says what the CPU must report, for runs under an emulator whose CPU is known.
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
#endif

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::cpu_back_end;
using dapple::coherence::is_power_of_two;

long expected_line_size_bytes = 0;

struct Choices {
  std::array<BackEnd, 8> at = {};
  size_t count = 0;
};

// What the CPU has, and on x86-64 also with its newer instructions left out and with other strides: a stride below the
// line repeats lines, a larger one leaves some out; neither may change what memory holds.
Choices every_choice() {
  Choices choices;
  choices.at[choices.count++] = cpu_back_end();
#if defined(__x86_64__)
  using dapple::coherence::x86_64::choose;
  using dapple::coherence::x86_64::Features;
  const Features cpu = dapple::coherence::x86_64::read_features();
  if (cpu.clflush) choices.at[choices.count++] = choose({true, false, false, cpu.line_size_bytes});
  if (cpu.clflushopt) choices.at[choices.count++] = choose({cpu.clflush, true, false, cpu.line_size_bytes});
  if (cpu.clwb) choices.at[choices.count++] = choose({cpu.clflush, false, true, cpu.line_size_bytes});
  choices.at[choices.count++] = choose({cpu.clflush, cpu.clflushopt, cpu.clwb, 32});
  choices.at[choices.count++] = choose({cpu.clflush, cpu.clflushopt, cpu.clwb, 128});
#endif
  return choices;
}

// Three pages, of which only the one in the middle may be touched. Ends the program if there is no memory.
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

void description__is_complete() {
  const BackEnd& back_end = cpu_back_end();
  printf("       %s: clean %s, clean + invalidate %s, completion %s, line %u, granule %u\n", back_end.cpu.architecture,
         back_end.cpu.clean_instruction, back_end.cpu.clean_invalidate_instruction, back_end.cpu.completion_instruction,
         back_end.cpu.line_size_bytes, back_end.cpu.writeback_granule_bytes);
  CHECK(&back_end == &cpu_back_end());
  CHECK(is_power_of_two(back_end.cpu.line_size_bytes));
  CHECK(is_power_of_two(back_end.cpu.writeback_granule_bytes));
  CHECK(back_end.cpu.writeback_granule_bytes >= back_end.cpu.line_size_bytes);
  if (expected_line_size_bytes != 0) {
    CHECK(back_end.cpu.line_size_bytes == static_cast<unsigned long>(expected_line_size_bytes));
  }
  CHECK(back_end.cpu.can_clean && back_end.cpu.can_clean_invalidate);
#if defined(__aarch64__)
  CHECK(strcmp(back_end.cpu.architecture, "arm64") == 0);
  CHECK(strcmp(back_end.cpu.clean_instruction, "dc cvac") == 0);
  CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "dc civac") == 0);
  CHECK(strcmp(back_end.cpu.completion_instruction, "dsb sy") == 0);
#elif defined(__x86_64__)
  CHECK(strcmp(back_end.cpu.architecture, "x86-64") == 0);
#endif
}

void operations__leave_data_unchanged() {
  const GuardedPage page;
  const Choices choices = every_choice();
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
    }
    back_end.order_before_device_reads();
    back_end.order_after_device_writes();
    back_end.full_barrier();
    CHECK(is_filled(page, seed));
  }
}

void read_only_memory__can_be_maintained() {
  const GuardedPage page;
  fill(page, 3);
  CHECK(mprotect(page.begin(), page.size(), PROT_READ) == 0);
  const Choices choices = every_choice();
  for (size_t i = 0; i < choices.count; ++i) {
    choices.at[i].clean(page.begin(), page.size());
    choices.at[i].clean_invalidate(page.begin(), page.size());
    choices.at[i].complete_maintenance();
  }
  CHECK(is_filled(page, 3));
}

#if defined(__x86_64__)
// x86 maintenance of a page that may not be read faults, which shows which lines are touched. (qemu's user mode
// executes arm64's as nothing, so there the disassembly test has to do.)
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
    for (BackEnd::RangeOperation operation : {back_end.clean_range, back_end.clean_invalidate_range}) {
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
    {"description__is_complete", description__is_complete},
    {"operations__leave_data_unchanged", operations__leave_data_unchanged},
    {"read_only_memory__can_be_maintained", read_only_memory__can_be_maintained},
#if defined(__x86_64__)
    {"lines__are_touched_inside_the_range_and_nowhere_else", lines__are_touched_inside_the_range_and_nowhere_else},
#endif
};

}  // namespace

int main(int argc, char** argv) {
  constexpr char kLineSize[] = "line_size=";
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], kLineSize, sizeof(kLineSize) - 1) != 0) return 2;
    expected_line_size_bytes = strtol(argv[i] + sizeof(kLineSize) - 1, nullptr, 10);
    if (expected_line_size_bytes <= 0) return 2;
  }
  return dapple::test::run_all(kTests, std::size(kTests));
}
