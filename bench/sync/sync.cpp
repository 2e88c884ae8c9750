// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// bench-sync [--rounds N] [--clean-invalidate]: compares the cache operations with libpmem's pmem_flush in one run,
// with the same instruction and the same fences, from 64 bytes to 64 MiB, for lines that the CPU has changed and lines
// that it has not. With --clean-invalidate both use clflushopt (libpmem does with PMEM_NO_CLWB=1), otherwise both use
// clwb.
//
// "sfence" is libpmem's own fence, pmem_drain(). "mfence" is ours: dappledv_sync_for_device(), or
// dappledv_sync_for_cpu(), which has an lfence before the maintenance as well; libpmem gets the same fences.
//
// "alone" is the time of the instructions and the fence in the program's own loop, without a call.
//
// In a round each of the two, in alternating order, goes over at least 1 MiB in pieces of the row's size with a fence
// after each. A row shows the medians of all rounds; its ratio is the median of the rounds' ratios, because other load
// on the machine affects both halves of a round alike. Fails if a ratio is below 0.95 after four times as many rounds.
#include <infiniband/dappledv.h>
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "bench/sync/measure.hpp"

namespace {

using namespace dapple;
using bench::Arena;
using bench::kLineBytes;

constexpr double kMinRatio = 0.95;
constexpr size_t kMinArena = size_t{1} << 20;
constexpr size_t kLargest = size_t{64} << 20;
constexpr int kMeasurements = 4;

const coherence::BackEnd& back_end = coherence::cpu_back_end();
dappledv_region_attr region;
int rounds_wanted = 0;
bool clean_invalidate = false;

// libpmem's drain is sfence.
void sfence() {
  asm volatile("sfence" : : : "memory");
}
void lfence() {
  asm volatile("lfence" : : : "memory");
}
void mfence() {
  asm volatile("mfence" : : : "memory");
}

enum class Fence { kSfence, kMfence };

// With mfence this measures the library's sync calls, as programs use them; with sfence, the cache operations alone.
double ours_ns(const Arena& arena, size_t length, Fence fence) {
  if (fence == Fence::kMfence) {
    const auto sync = clean_invalidate ? dappledv_sync_for_cpu : dappledv_sync_for_device;
    return bench::pass_ns(arena, length, [sync](void* address, size_t size) {
      const iovec range = {address, size};
      (void)sync(&region, &range, 1);
    });
  }
  if (clean_invalidate) {
    return bench::pass_ns(arena, length, [](void* address, size_t size) {
      back_end.clean_invalidate(address, size);
      sfence();
    });
  }
  return bench::pass_ns(arena, length, [](void* address, size_t size) {
    back_end.clean(address, size);
    sfence();
  });
}

double theirs_ns(const Arena& arena, size_t length, Fence fence) {
  if (fence == Fence::kMfence) {
    const bool before = clean_invalidate;
    return bench::pass_ns(arena, length, [before](void* address, size_t size) {
      if (before) lfence();
      pmem_flush(address, size);
      mfence();
    });
  }
  return bench::pass_ns(arena, length, [](void* address, size_t size) {
    pmem_flush(address, size);
    pmem_drain();
  });
}

// The time of the instructions and the fence alone: neither library can be faster.
double alone_ns(const Arena& arena, size_t length, Fence fence) {
  return bench::pass_ns(arena, length, [fence](void* address, size_t size) {
    auto* memory = static_cast<volatile char*>(address);
    for (size_t at = 0; at < size; at += kLineBytes) {
      if (clean_invalidate) {
        asm volatile("clflushopt %0" : "+m"(memory[at]));
      } else {
        asm volatile("clwb %0" : "+m"(memory[at]));
      }
    }
    fence == Fence::kMfence ? mfence() : sfence();
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Rounds {
  std::vector<double> ours_ns;
  std::vector<double> theirs_ns;
  std::vector<double> alone_ns;
  std::vector<double> ratios;
};

void measure(const Arena& arena, size_t length, bool dirty, Fence fence, int count, Rounds& rounds) {
  for (int round = 0; round < count; ++round) {
    double ours = 0;
    double theirs = 0;
    for (const bool our_turn : {round % 2 == 0, round % 2 != 0}) {
      dirty ? arena.make_dirty() : arena.make_clean();
      (our_turn ? ours : theirs) = our_turn ? ours_ns(arena, length, fence) : theirs_ns(arena, length, fence);
    }
    dirty ? arena.make_dirty() : arena.make_clean();
    rounds.alone_ns.push_back(alone_ns(arena, length, fence));
    rounds.ours_ns.push_back(ours);
    rounds.theirs_ns.push_back(theirs);
    rounds.ratios.push_back(theirs / ours);
  }
}

// True if we are fast enough.
bool row(size_t length, bool dirty, Fence fence) {
  const Arena arena(std::max(length, kMinArena));
  const int count = rounds_wanted != 0 ? rounds_wanted : length >= size_t{16} << 20 ? 15 : 101;
  Rounds rounds;
  for (int i = 0; i < kMeasurements && (i == 0 || median(rounds.ratios) < kMinRatio); ++i) {
    measure(arena, length, dirty, fence, count, rounds);
  }
  const double lines = static_cast<double>(arena.size()) / kLineBytes;
  const double ours_ns = median(rounds.ours_ns);
  const double ratio = median(rounds.ratios);
  printf("| %8zu | %-5s | %-6s | %7.3f | %7.3f | %7.2f | %4.2f | %7.3f |%s\n", length, dirty ? "dirty" : "clean",
         fence == Fence::kSfence ? "sfence" : "mfence", ours_ns / lines, median(rounds.theirs_ns) / lines,
         static_cast<double>(arena.size()) / ours_ns, ratio, median(rounds.alone_ns) / lines,
         ratio < kMinRatio ? " too slow" : "");
  fflush(stdout);
  return ratio >= kMinRatio;
}

int usage() {
  fprintf(stderr, "usage: bench-sync [--rounds N] [--clean-invalidate]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--clean-invalidate") == 0) {
      clean_invalidate = true;
    } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      rounds_wanted = atoi(argv[++i]);
    } else {
      return usage();
    }
  }
  // libpmem chooses its instruction when it is loaded.
  if (clean_invalidate && getenv("PMEM_NO_CLWB") == nullptr) {
    setenv("PMEM_NO_CLWB", "1", 1);
    execv("/proc/self/exe", argv);
    perror("bench-sync: cannot begin anew");
    return 1;
  }
  const coherence::CpuDescription& cpu = back_end.cpu;
  if (!clean_invalidate && strcmp(cpu.clean_instruction, "clwb") != 0) {
    printf("SKIP: this CPU has no clwb; --clean-invalidate compares %s\n", cpu.clean_invalidate_instruction);
    return 77;
  }
  region.coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  region.sync_supported = 1;
  printf("%s in both; time for a line in ns; ratio above 1: dapple is faster\n\n",
         clean_invalidate ? cpu.clean_invalidate_instruction : cpu.clean_instruction);
  printf(
      "|    bytes | lines | fence  |  dapple | libpmem |    GB/s | ratio |   alone "
      "|\n|---|---|---|---|---|---|---|---|\n");
  bool fast_enough = true;
  for (const Fence fence : {Fence::kSfence, Fence::kMfence}) {
    for (const bool dirty : {true, false}) {
      for (size_t length = kLineBytes; length <= kLargest; length *= 4) fast_enough &= row(length, dirty, fence);
    }
  }
  return fast_enough ? 0 : 1;
}
