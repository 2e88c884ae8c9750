/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-limits [--copies]: the machine's own limits for two programs of one host, one line NAME VALUE each.
 * "pingpong_us" is half a round trip of a cache line between two threads on the first two CPUs that this process may
 * use: no message is faster. "memcpy_SIZE" is the speed of one copy of SIZE bytes in GB/s (10^9).
 * "kernel_copy_SIZE" is that of a copy to another process' memory by the kernel: process_vm_writev().
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/check.h"

/* The best batch counts, because another program may take a CPU during any of them. */
#define BATCHES 20U
#define ROUND_TRIPS 2000U /* of a batch */
#define BUFFER_BYTES (2U << 20)
#define COPIES 20U

static _Alignas(128) atomic_uint line;

static void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  check(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0, "a thread cannot choose its CPU");
}

/* The number-th CPU that this process may use. */
static int usable_cpu(int number) {
  cpu_set_t set;
  check(sched_getaffinity(0, sizeof set, &set) == 0, "no set of CPUs");
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET((size_t)cpu, &set) && number-- == 0) return cpu;
  }
  check(0, "this needs two CPUs");
  return -1;
}

/* Even values are this thread's to answer, odd ones the other's. */
static void await_value(unsigned int value) {
  while (atomic_load_explicit(&line, memory_order_acquire) != value) {
  }
}

static void* answer(void* cpu) {
  run_on(*(const int*)cpu);
  for (unsigned int i = 0; i < BATCHES * ROUND_TRIPS; ++i) {
    await_value(2 * i + 1);
    atomic_store_explicit(&line, 2 * i + 2, memory_order_release);
  }
  return NULL;
}

static double pingpong_us(void) {
  const int first = usable_cpu(0);
  int second = usable_cpu(1);
  double best_s = 1e9;
  pthread_t other;
  check(pthread_create(&other, NULL, answer, &second) == 0, "no thread");
  run_on(first);
  for (unsigned int batch = 0, i = 0; batch < BATCHES; ++batch) {
    const double begin_s = now_s();
    for (unsigned int trip = 0; trip < ROUND_TRIPS; ++trip, ++i) {
      atomic_store_explicit(&line, 2 * i + 1, memory_order_release);
      await_value(2 * i + 2);
    }
    const double took_s = now_s() - begin_s;
    if (took_s < best_s) best_s = took_s;
  }
  pthread_join(other, NULL);
  return best_s * 1e6 / ROUND_TRIPS / 2;
}

/* The memory of this process, and of its child at the same addresses. */
static char* memory;
static pid_t child;

static void copy_here(size_t size) {
  memcpy(memory, memory + BUFFER_BYTES, size);
  /* The compiler must not leave a copy out. */
  __asm__ volatile("" : : "r"(memory) : "memory");
}

static void copy_to_child(size_t size) {
  const struct iovec from = {memory, size}, to = {memory + BUFFER_BYTES, size};
  check(process_vm_writev(child, &from, 1, &to, 1, 0) == (ssize_t)size, "no copy to another process");
}

static double copy_gb_s(void (*copy)(size_t), size_t size) {
  const size_t times = (64U << 20) / size / COPIES + 1;
  double best_s = 1e9;
  for (unsigned int i = 0; i < COPIES; ++i) {
    const double begin_s = now_s();
    for (size_t each = 0; each < times; ++each) copy(size);
    const double took_s = now_s() - begin_s;
    if (took_s < best_s) best_s = took_s;
  }
  return (double)size * (double)times / best_s / 1e9;
}

static void make_child(void) {
  int ready[2];
  check(pipe(ready) == 0, "no pipe");
  child = fork();
  check(child >= 0, "no process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_on(usable_cpu(1));
    memset(memory, 1, (size_t)2 * BUFFER_BYTES);
    check(write(ready[1], "", 1) == 1, "no answer to another process");
    for (;;) pause();
  }
  char byte;
  check(read(ready[0], &byte, 1) == 1, "no answer of another process");
}

static void end_child(void) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  const int copies = argc == 2 && strcmp(argv[1], "--copies") == 0;
  check(argc == 1 || copies, "usage: bench-limits [--copies]");
  memory = aligned_alloc(4096, (size_t)2 * BUFFER_BYTES);
  check(memory != NULL, "no memory");
  memset(memory, 1, (size_t)2 * BUFFER_BYTES);
  /* This comes before pingpong_us(), which leaves this thread only one CPU. */
  if (copies) make_child();
  printf("pingpong_us %.4f\n", pingpong_us());
  if (!copies) return 0;
  for (size_t size = 64U << 10; size <= 1U << 20; size *= 16) {
    printf("memcpy_%zu %.3f\n", size, copy_gb_s(copy_here, size));
    printf("kernel_copy_%zu %.3f\n", size, copy_gb_s(copy_to_child, size));
  }
  end_child();
  return 0;
}
