/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Executes both sync calls of the library one instruction at a time and prints the places in the library of the
 * executed cache and fence instructions, in their order: "device OFFSET", "cpu OFFSET". The first line has the names
 * that the library reports: "names CLEAN CLEAN_INVALIDATE". The script running-path disassembles those places.
 */
#include <infiniband/dappledv.h>

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLines = 3, kLineBytes = 64, kMaxSteps = 100000, kSkipped = 77 };

static _Alignas(4096) char memory[4096];
static struct dappledv_device_attr attr;
static struct dappledv_region_attr region;
static const struct iovec range = {memory + kLineBytes + 1, (kLines - 1) * kLineBytes};

typedef int (*sync_function)(const struct dappledv_region_attr*, const struct iovec*, size_t);

/* The traced half: each call between two stops. */
static void run_calls(void) {
  static const sync_function calls[] = {dappledv_sync_for_device, dappledv_sync_for_cpu};
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(errno == EPERM ? kSkipped : 1);
  /*
   * The first run is not watched: the library chooses its instructions at its first call, and the loader binds each
   * function at its first call.
   */
  for (size_t i = 0; i < 2; ++i) calls[i](&region, &range, 1);
  raise(SIGSTOP);
  for (size_t i = 0; i < 2; ++i) {
    calls[i](&region, &range, 1);
    raise(SIGSTOP);
  }
  _exit(0);
}

/* 0f ae, with or without a prefix: clflush, clflushopt, clwb, lfence, mfence and sfence; also fxsave and the like,
 * which no code of the library uses. */
static int is_cache_or_fence(long word) {
  const unsigned char* bytes = (const unsigned char*)&word;
  if (bytes[0] == 0x66 || bytes[0] == 0xf3) ++bytes;
  if ((bytes[0] & 0xf0) == 0x40) ++bytes;
  return bytes[0] == 0x0f && bytes[1] == 0xae;
}

/* Steps until the child's own next stop. Returns 0, or -1 if it ended or never reached the stop. */
static int step_through(pid_t pid, const char* call, unsigned long library) {
  for (int step = 0; step < kMaxSteps; ++step) {
    struct user_regs_struct registers;
    int status;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return -1;
    errno = 0;
    const long word = ptrace(PTRACE_PEEKTEXT, pid, (void*)registers.rip, NULL);
    if (errno == 0 && is_cache_or_fence(word)) printf("%s 0x%lx\n", call, (unsigned long)registers.rip - library);
    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
      return -1;
    if (WSTOPSIG(status) == SIGSTOP) return 0;
  }
  return -1;
}

int main(void) {
  struct ibv_device device = {.name = "none"};
  struct ibv_context context = {.device = &device};
  Dl_info library;
  int status;
  if (dappledv_query_device_override(&context, "cpu", &attr) != 0 || dappledv_init_region(&attr, &region) != 0)
    return 1;
  if (dladdr((void*)dappledv_sync_for_device, &library) == 0) return 1;
  printf("library %s\nnames %s %s\n", library.dli_fname, attr.clean_instruction, attr.clean_invalidate_instruction);
  fflush(stdout);

  const pid_t pid = fork();
  if (pid < 0) return 1;
  if (pid == 0) run_calls();
  if (waitpid(pid, &status, 0) != pid) return 1;
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) == kSkipped) printf("SKIP: this machine lets no process trace another\n");
    return WEXITSTATUS(status);
  }
  const unsigned long base = (unsigned long)library.dli_fbase;
  if (step_through(pid, "device", base) != 0 || step_through(pid, "cpu", base) != 0) {
    fprintf(stderr, "the calls did not come to their end\n");
    return 1;
  }
  ptrace(PTRACE_CONT, pid, NULL, NULL);
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
