/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * A program forks while another thread opens the first connection to dappled. The child can use rdma_cm, as after any
 * other fork. Runs under dapple-run, in a network namespace without a dappled; DAPPLE_REAL_DAPPLED is its program.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/dapple-fork-XXXXXX";
static char started[64], released[64], program[64];

static int fail(const char* what) {
  fprintf(stderr, "FAILED %s: %s\n", what, strerror(errno));
  return 1;
}

/* In place of dappled: tells that it has started, and begins when the program forks. */
static int write_program(void) {
  FILE* file = fopen(program, "w");
  if (!file) return -1;
  fprintf(file,
          "#!/bin/sh\n"
          ": >%s\n"
          "until [ -e %s ]; do sleep 0.05; done\n"
          "exec \"$DAPPLE_REAL_DAPPLED\" \"$@\"\n",
          started, released);
  if (fclose(file) != 0) return -1;
  return chmod(program, 0700);
}

/* Runs before the handlers of libraries that are older than this one. */
static void release_dappled(void) {
  const int fd = open(released, O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
}

static int open_door(void) {
  const int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0 ? 0 : -1;
}

static void* open_first(void* result) {
  *(int*)result = open_door();
  return NULL;
}

int main(void) {
  pthread_t thread;
  int opened = -1, status = -1;
  pid_t ended = 0;

  if (!mkdtemp(folder)) return fail("mkdtemp");
  snprintf(started, sizeof(started), "%s/started", folder);
  snprintf(released, sizeof(released), "%s/released", folder);
  snprintf(program, sizeof(program), "%s/dappled", folder);
  if (write_program() != 0) return fail("the script");
  setenv("DAPPLE_DAPPLED", program, 1);
  if (pthread_create(&thread, NULL, open_first, &opened) != 0) return fail("pthread_create");
  for (int i = 0; i < 30000 && access(started, F_OK) != 0; i++) usleep(1000);
  if (access(started, F_OK) != 0) return fail("the script has not been started");
  /* Later than the doors' handlers, so before them. */
  pthread_atfork(release_dappled, NULL, NULL);

  const pid_t child = fork();
  if (child == 0) _exit(open_door() == 0 ? 0 : 1);
  if (child < 0) return fail("fork");
  /* It may wait for the lock of a thread that it lacks, with its signals blocked. */
  for (int i = 0; i < 3000 && (ended = waitpid(child, &status, WNOHANG)) == 0; i++) usleep(10000);
  if (ended != child) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  pthread_join(thread, NULL);
  unlink(started);
  unlink(released);
  unlink(program);
  rmdir(folder);
  if (opened != 0) return fail("the first connection");
  if (ended != child) {
    fprintf(stderr, "FAILED the child waits for ever\n");
    return 1;
  }
  if (status != 0) {
    fprintf(stderr, "FAILED the child: status %#x\n", (unsigned)status);
    return 1;
  }
  printf("passed\n");
  return 0;
}
