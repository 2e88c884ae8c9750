/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * shared FOLDER NAME: each of the C library's ways to list a folder of the kernel finds NAME, which only the tree has,
 * once, and each of the others as often as the first way.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/native/doors/check.h"

static const char* wanted;
static int total;
static int found;

static void count(const char* name) {
  total++;
  if (strcmp(name, wanted) == 0) found++;
}

static void compare_with(int expected) {
  CHECK(found == 1);
  CHECK(total == expected);
  total = found = 0;
}

static void count_stream(DIR* stream) {
  for (struct dirent* entry; (entry = readdir(stream)) != NULL;) {
    CHECK(strcmp(entry->d_name, wanted) != 0 || entry->d_type == DT_DIR);
    count(entry->d_name);
  }
}

static int is_name(const struct dirent* entry) {
  return entry->d_name[0] != '.';
}

static void by_stream(const char* folder, int expected) {
  DIR* stream = opendir(folder);
  long place;
  count_stream(stream);
  compare_with(expected);
  CHECK(readdir(stream) == NULL && errno == 0);
  rewinddir(stream);
  place = telldir(stream);
  count_stream(stream);
  compare_with(expected);
  seekdir(stream, place);
  count_stream(stream);
  compare_with(expected);
  CHECK(closedir(stream) == 0);
}

static void by_descriptor(const char* folder, int expected) {
  DIR* stream;
  char bytes[4096] __attribute__((aligned(8)));
  int fd = open(folder, O_RDONLY | O_DIRECTORY);
  for (ssize_t size; (size = getdents64(fd, bytes, sizeof bytes)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      const struct dirent64* entry = (const struct dirent64*)(bytes + at);
      count(entry->d_name);
      at += entry->d_reclen;
    }
  }
  compare_with(expected);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  stream = fdopendir(fd);
  count_stream(stream);
  compare_with(expected);
  closedir(stream);
  fd = open(folder, O_RDONLY | O_DIRECTORY);
  CHECK(fchdir(fd) == 0);
  stream = opendir(".");
  count_stream(stream);
  compare_with(expected);
  closedir(stream);
  close(fd);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void by_readdir_r(const char* folder, int expected) {
  DIR* stream = opendir(folder);
  struct dirent entry;
  struct dirent* result;
  while (readdir_r(stream, &entry, &result) == 0 && result != NULL) count(entry.d_name);
  compare_with(expected);
  closedir(stream);
}

static void by_scandir(const char* folder, int expected) {
  struct dirent** list = NULL;
  const int size = scandir(folder, &list, is_name, alphasort);
  for (int i = 0; i < size; i++) {
    CHECK(i == 0 || strcoll(list[i - 1]->d_name, list[i]->d_name) < 0);
    count(list[i]->d_name);
    free(list[i]);
  }
  free(list);
  compare_with(expected - 2);
  CHECK(scandir("/sys/class/absent/class", &list, NULL, NULL) == -1 && errno == ENOENT);
}

static void by_glob(const char* folder) {
  char pattern[256];
  glob_t names;
  snprintf(pattern, sizeof pattern, "%s/%.5s*", folder, wanted);
  CHECK(glob(pattern, 0, NULL, &names) == 0);
  for (size_t i = 0; i < names.gl_pathc; i++) count(strrchr(names.gl_pathv[i], '/') + 1);
  globfree(&names);
  CHECK(found == 1);
  total = found = 0;
}

int main(int argc, char** argv) {
  DIR* stream;
  int expected;
  if (argc != 3) return 2;
  wanted = argv[2];
  stream = opendir(argv[1]);
  if (stream == NULL) return 2;
  count_stream(stream);
  closedir(stream);
  expected = total;
  compare_with(expected);
  by_stream(argv[1], expected);
  by_descriptor(argv[1], expected);
  by_readdir_r(argv[1], expected);
  by_scandir(argv[1], expected);
  by_glob(argv[1]);
  printf("%d failed\n", failures);
  return failures != 0;
}
