/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "report.h"

static _Noreturn void be_server(struct server_options* options, pid_t client) {
  report_set_role("dapple-demo server");
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* the server must not wait for a client that has ended */
  if (getppid() != client) {
    exit(1);
  }
  run_server(options);
  exit(0);
}

/*
 * Waits for the server's end. If the server failed, exits with its code and prints nothing, because the server has
 * printed a line.
 */
static void await_server(pid_t server, unsigned timeout_s) {
  double deadline = now_s() + timeout_s;
  int status = 0;
  while (waitpid(server, &status, WNOHANG) == 0) {
    if (now_s() > deadline) {
      kill(server, SIGKILL);
      waitpid(server, &status, 0);
      fail("the server did not end within %u s", timeout_s);
    }
    usleep(10000);
  }
  if (WIFSIGNALED(status)) {
    fail("signal %d ended the server", WTERMSIG(status));
  }
  if (WEXITSTATUS(status) != 0) {
    exit(1);
  }
}

/* Reads the line with the server's address. Returns 0 if the server ended instead. */
static int read_address(int fd, unsigned timeout_s, char* address, size_t size) {
  size_t length = 0;
  double deadline = now_s() + timeout_s;
  while (length == 0 || address[length - 1] != '\n') {
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int left_ms = (int)((deadline - now_s()) * 1000);
    int ready = left_ms > 0 ? poll(&waiting, 1, left_ms) : 0;
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      fail("the server is not ready within %u s", timeout_s);
    }
    ssize_t got = length < size - 1 ? read(fd, address + length, size - 1 - length) : 0;
    if (got <= 0) {
      return 0;
    }
    length += (size_t)got;
  }
  address[length - 1] = '\0';
  return 1;
}

void run_pair(struct server_options* server, struct client_options* client) {
  int ends[2];
  char address[256];
  if (pipe(ends) != 0) {
    fail("pipe: %s", strerror(errno));
  }
  /* Fork before the first DAT call: a provider's open objects do not survive a fork. */
  pid_t parent = getpid();
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) {
    fail("fork: %s", strerror(errno));
  }
  if (child == 0) {
    close(ends[0]);
    server->address_fd = ends[1];
    be_server(server, parent);
  }
  close(ends[1]);
  if (!read_address(ends[0], client->timeout_s, address, sizeof address)) {
    await_server(child, client->timeout_s);
    fail("the server ended before it listened");
  }
  close(ends[0]);
  client->server = address;
  run_client(client);
  await_server(child, client->timeout_s);
}
