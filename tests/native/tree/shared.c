/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * shared FOLDER NAME: each of the C library's ways to list a folder of the kernel, or to go through it, finds NAME,
 * which only the tree has, once, and each of the others as often as the first way.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
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
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
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
  int fd = open(folder, O_RDONLY);
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
  }
  for (int i = 0; i < size; i++) free(list[i]);
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

static int below;

static int visit(const char* path, const struct stat* status, int type, struct FTW* place) {
  const char* folder = path + place->base;
  struct stat here;
  if (place->level == 0) return FTW_CONTINUE;
  if (place->level >= 2) {
    below++;
    return FTW_CONTINUE;
  }
  count(folder);
  CHECK(lstat(folder, &here) == 0 && here.st_ino == status->st_ino && here.st_dev == status->st_dev);
  CHECK(strcmp(folder, wanted) != 0 || type == FTW_D);
  return type == FTW_D && strcmp(folder, wanted) != 0 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}

static void by_nftw(const char* folder, int expected) {
  char before[256];
  char after[256];
  CHECK(getcwd(before, sizeof before) != NULL);
  CHECK(nftw(folder, visit, 8, FTW_PHYS | FTW_CHDIR | FTW_ACTIONRETVAL) == 0);
  CHECK(getcwd(after, sizeof after) != NULL && strcmp(before, after) == 0);
  CHECK(below > 0);
  compare_with(expected - 2);
}

static char prefix[256];
static int last_first;

/* With FTW_DEPTH a folder comes behind what is in it. */
static int visit_last(const char* path, const struct stat* status, int type, struct FTW* place) {
  if (strncmp(path, prefix, strlen(prefix)) != 0) return 0;
  if (path[strlen(prefix)] == '/' && !found) last_first++;
  if (path[strlen(prefix)] == '\0') found += type == FTW_DP && S_ISDIR(status->st_mode) && place->level == 1;
  return 0;
}

static int visit_old(const char* path, const struct stat* status, int type) {
  found += strcmp(path, prefix) == 0 && type == FTW_D && S_ISDIR(status->st_mode);
  return 0;
}

static void by_ftw(const char* folder) {
  snprintf(prefix, sizeof prefix, "%s/%s", folder, wanted);
  CHECK(nftw(folder, visit_last, 8, FTW_PHYS | FTW_DEPTH) == 0);
  CHECK(found == 1 && last_first > 0);
  found = 0;
  CHECK(ftw(folder, visit_old, 8) == 0);
  /* It comes to each folder once, and /dev/shm may have the real one. */
  CHECK(found == 1 || strcmp(folder, "/dev") == 0);
  found = 0;
  CHECK(nftw("/sys/class/absent", visit_last, 8, FTW_PHYS) == -1 && errno == ENOENT);
}

static int by_name(const FTSENT** left, const FTSENT** right) {
  return strcmp((*left)->fts_name, (*right)->fts_name);
}

static void by_fts(char* folder, int expected) {
  char* const names[] = {folder, NULL};
  char last[256] = "";
  FTS* list = fts_open(names, FTS_PHYSICAL, by_name);
  FTSENT* entry = fts_read(list);
  CHECK(entry->fts_info == FTS_D && entry->fts_level == 0 && strcmp(entry->fts_path, folder) == 0);
  for (entry = fts_children(list, 0); entry != NULL; entry = entry->fts_link) {
    count(entry->fts_name);
    if (strcmp(entry->fts_name, wanted) != 0) fts_set(list, entry, FTS_SKIP);
  }
  compare_with(expected - 2);
  below = 0;
  while ((entry = fts_read(list)) != NULL) {
    struct stat status;
    CHECK(strncmp(entry->fts_path, folder, strlen(folder)) == 0 && strlen(entry->fts_path) == entry->fts_pathlen);
    CHECK(lstat(entry->fts_accpath, &status) == 0 && status.st_ino == entry->fts_statp->st_ino);
    if (entry->fts_level != 2) continue;
    CHECK(strcmp(entry->fts_parent->fts_name, wanted) == 0);
    below++;
  }
  CHECK(errno == 0 && below > 0);
  CHECK(fts_close(list) == 0);
  list = fts_open(names, FTS_PHYSICAL | FTS_NOCHDIR | FTS_SEEDOT, by_name);
  while ((entry = fts_read(list)) != NULL) {
    if (entry->fts_level != 1 || entry->fts_info == FTS_DP) continue;
    CHECK(strcmp(last, entry->fts_name) < 0);
    snprintf(last, sizeof last, "%s", entry->fts_name);
    count(entry->fts_name);
    fts_set(list, entry, FTS_SKIP);
  }
  compare_with(expected);
  CHECK(fts_close(list) == 0);
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
  by_nftw(argv[1], expected);
  by_ftw(argv[1]);
  by_fts(argv[1], expected);
  printf("%d failed\n", failures);
  return failures != 0;
}
