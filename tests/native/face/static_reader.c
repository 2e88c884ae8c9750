/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * face-static-reader FILE...: prints the contents of each file, or the name of the file and the errno of the call that
 * failed. With a number in place of the first file it sleeps so many milliseconds first. A name behind "+" is that of a
 * file that it tries to write, or to make, and then to remove. It is statically linked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print(const char* path) {
  char text[4096];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);
  if (size < 0)
    printf("%s: %s: %s\n", path, file < 0 ? "open" : "read", strerror(errno));
  else
    fwrite(text, 1, (size_t)size, stdout);
  if (file >= 0) close(file);
}

static void change(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  printf("write: %s\n", file < 0 ? strerror(errno) : "done");
  if (file >= 0) close(file);
  printf("remove: %s\n", unlink(path) != 0 ? strerror(errno) : "done");
}

int main(int argc, char** argv) {
  int i = 1;
  if (argc > 1 && strtol(argv[1], NULL, 10) > 0) usleep((useconds_t)strtol(argv[i++], NULL, 10) * 1000);
  for (; i < argc; i++) {
    if (argv[i][0] == '+')
      change(argv[i] + 1);
    else
      print(argv[i]);
  }
  return 0;
}
