/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Process 1 of an emulated machine whose initramfs holds test programs. It runs each line of /tests/list, words
 * separated by single blanks, the first of them a program in /tests; prints a line for each and one for all, and powers
 * off.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxWords = 16, kMaxLineBytes = 512 };

/* True if the program ran and exited with 0. */
static int run(char* line) {
  char program[kMaxLineBytes + sizeof("/tests/")];
  char* words[kMaxWords + 1] = {NULL};
  char* rest = line;
  for (int i = 0; i < kMaxWords && rest != NULL; ++i) words[i] = strsep(&rest, " ");
  snprintf(program, sizeof(program), "/tests/%s", words[0]);
  words[0] = program;

  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    execv(program, words);
    perror(program);
    _exit(127);
  }
  int status = -1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 0;
  if (WIFSIGNALED(status)) printf("guest: %s: %s\n", program, strsignal(WTERMSIG(status)));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_list(void) {
  int count = 0;
  int failed = 0;
  char line[kMaxLineBytes];
  FILE* const list = fopen("/tests/list", "r");
  if (list == NULL) {
    perror("guest: /tests/list");
    return;
  }
  while (fgets(line, sizeof(line), list) != NULL) {
    char name[kMaxLineBytes];
    line[strcspn(line, "\n")] = '\0';
    memcpy(name, line, sizeof(name));
    printf("guest: running %s\n", name);
    const int passed = run(line);
    ++count;
    failed += !passed;
    printf("guest: %s %s\n", passed ? "passed" : "FAILED", name);
  }
  fclose(list);
  printf("guest: %d programs, %d failed\n", count, failed);
}

int main(void) {
  mount("proc", "/proc", "proc", 0, NULL);
  mount("sys", "/sys", "sysfs", 0, NULL);
  run_list();
  fflush(stdout);
  sync();
  reboot(RB_POWER_OFF);
  return 1;
}
