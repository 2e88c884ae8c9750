/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * face-static-reader FILE...: prints the contents of each file, or the name of the file and the errno of the call that
 * failed. With "-" in place of the first file it prints "waits", and then the files once for each empty line of its
 * standard input, until this has something else or ends. A name behind "+" is that of a file that it tries to write, or
 * to make, and then to remove. It is statically linked.
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

static void use(char** names) {
  for (; *names != NULL; names++) {
    if (**names == '+')
      change(*names + 1);
    else
      print(*names);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  char byte;
  if (argc == 1 || strcmp(argv[1], "-") != 0) {
    use(argv + 1);
    return 0;
  }
  puts("waits");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) == 1 && byte == '\n') use(argv + 2);
  return 0;
}
