// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/kills/stage.hpp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"

// The processes are children of a fork and make threads, which ThreadSanitizer forbids unless it is told otherwise.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}

namespace dapple::tests {
namespace {

uint32_t failed_so_far = 0;

// Prints the number, name and state of each child.
void show_children() {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  FILE* children = fopen(path, "r");
  if (children == nullptr) return;
  for (int child = 0; fscanf(children, "%d", &child) == 1;) {
    char stat[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE* file = fopen(path, "r");
    if (file == nullptr) continue;
    if (fgets(stat, sizeof stat, file) != nullptr) printf("left: %.60s\n", stat);
    fclose(file);
  }
  fclose(children);
}

}  // namespace

void failed(const char* what, const char* more) {
  printf("FAILED: %s%s%s\n", what, more[0] != '\0' ? ": " : "", more);
  fflush(stdout);
  failed_so_far++;
}

uint32_t failures() {
  return failed_so_far;
}

unsigned long number_from(const char* variable, unsigned long usual) {
  const char* wanted = getenv(variable);
  return wanted != nullptr ? strtoul(wanted, nullptr, 10) : usual;
}

void* prepare_stage(size_t size) {
  need_new_namespace();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) skip_program("no shared memory");
  return memory;
}

bool ends_with(pid_t process, int code) {
  int status = 0;
  return waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

void expect_nothing_left() {
  if (!ends_soon()) failed("something of dappled is left in the network namespace");
  // The last dappled closes its sockets a moment before it ends.
  const bool alone = await(5, [] { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; });
  if (alone) return;
  failed("a process is left");
  show_children();
}

}  // namespace dapple::tests
