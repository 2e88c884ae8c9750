/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* A library whose constructor calls functions that the doors replace. A preloaded library is initialised after it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

const char* early_word(void);

static char word[64];

__attribute__((constructor)) static void early(void) {
  struct stat status;
  FILE* const file = fopen("/dev/null", "re");
  FILE* const missing = fopen("/no/such/file", "r");
  const int fd = open("/dev/null", O_RDWR);
  const int other = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(word, sizeof word, "fopen %d %d, open %d, stat %d, write %zd, socket %d", file != NULL, missing != NULL,
           fd >= 0, fstat(fd, &status), write(fd, "x", 1), other >= 0);
  if (file) fclose(file);
  close(fd);
  close(other);
}

const char* early_word(void) {
  return word;
}
