// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// bench-sync-variants: compares the loop of coherence/ over a large range with variants: unrolled, with the wait after
// each batch, and with two threads. Prints ns for each line, and the loop's time divided by the variant's.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "bench/sync/measure.hpp"
#include "coherence/x86_64.hpp"

namespace {

using namespace dapple;
using bench::Arena;
using bench::kLineBytes;

const coherence::BackEnd& back_end = coherence::cpu_back_end();

void the_loop(const void* address, size_t length) {
  back_end.clean(address, length);
  back_end.complete_maintenance();
}

template <int kTimes>
void unrolled(const void* address, size_t length) {
  const auto* line = static_cast<const unsigned char*>(address);
  const unsigned char* const end = line + length;
  for (; line < end; line += kTimes * kLineBytes) {
#pragma GCC unroll 16
    for (int i = 0; i < kTimes; ++i) asm volatile("clwb (%0)" : : "r"(line + i * kLineBytes) : "memory");
  }
  back_end.complete_maintenance();
}

template <size_t kBatchBytes>
void in_batches(const void* address, size_t length) {
  const auto* piece = static_cast<const unsigned char*>(address);
  const unsigned char* const end = piece + length;
  for (; piece < end; piece += kBatchBytes) {
    back_end.clean(piece, std::min(kBatchBytes, static_cast<size_t>(end - piece)));
    back_end.complete_maintenance();
  }
}

// A helper thread that spins for work: no other way of handing work to a thread costs less.
struct Helper {
  std::atomic<const void*> address = nullptr;
  size_t length = 0;
  std::atomic<bool> stop = false;
} helper;

void* help(void*) {
  while (!helper.stop.load(std::memory_order_relaxed)) {
    if (const void* address = helper.address.load(std::memory_order_acquire)) {
      the_loop(address, helper.length);
      helper.address.store(nullptr, std::memory_order_release);
    }
  }
  return nullptr;
}

void two_threads(const void* address, size_t length) {
  const size_t half = length / 2;
  helper.length = length - half;
  helper.address.store(static_cast<const unsigned char*>(address) + half, std::memory_order_release);
  the_loop(address, half);
  while (helper.address.load(std::memory_order_acquire) != nullptr) {
  }
}

struct Variant {
  const char* name;
  void (*run)(const void* address, size_t length);
};

constexpr Variant kVariants[] = {{"loop", the_loop},
                                 {"unrolled 4", unrolled<4>},
                                 {"unrolled 16", unrolled<16>},
                                 {"4 KiB batches", in_batches<4096>},
                                 {"64 KiB batches", in_batches<65536>},
                                 {"two threads", two_threads}};

void compare(size_t size, bool dirty) {
  const Arena arena(size);
  double best_ns[std::size(kVariants)];
  std::fill(std::begin(best_ns), std::end(best_ns), 1e18);
  const int rounds = size >= size_t{16} << 20 ? 9 : size >= size_t{1} << 20 ? 60 : 400;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < std::size(kVariants); ++i) {
      dirty ? arena.make_dirty() : arena.make_clean();
      best_ns[i] = std::min(best_ns[i], bench::pass_ns(arena, size, kVariants[i].run, bench::wall_ns));
    }
  }
  printf("%7zu KiB %-5s", size >> 10, dirty ? "dirty" : "clean");
  for (double ns : best_ns) printf("  %7.3f %5.2f", ns * kLineBytes / static_cast<double>(size), best_ns[0] / ns);
  printf("\n");
  fflush(stdout);
}

}  // namespace

int main() {
  if (strcmp(back_end.cpu.clean_instruction, "clwb") != 0) {
    printf("SKIP: the variants are of clwb, and this CPU has %s\n", back_end.cpu.clean_instruction);
    return 77;
  }
  pthread_t thread;
  if (pthread_create(&thread, nullptr, help, nullptr) != 0) return 1;
  printf("clwb + mfence, ns for a line, and how many times as fast as the loop\n%17s", "");
  for (const Variant& variant : kVariants) printf("  %-13s", variant.name);
  printf("\n");
  for (const bool dirty : {true, false}) {
    for (size_t size = size_t{16} << 10; size <= size_t{64} << 20; size *= 4) compare(size, dirty);
  }
  helper.stop = true;
  pthread_join(thread, nullptr);
  return 0;
}
