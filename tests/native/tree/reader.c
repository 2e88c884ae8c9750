/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * reader WAY FOLDER: prints what is below a folder, with one of the C library's ways to go through it. A line is "d",
 * "l" or "f" for a folder, a link or a file, the path from FOLDER, and the link's target or the file's first line. The
 * order is that of the way.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char* top;

static const char* below(const char* path) {
  const size_t size = strlen(top);
  return strncmp(path, top, size) == 0 && path[size] == '/' ? path + size + 1 : path;
}

static void show_contents(const char* path, int fd) {
  char text[4096] = "";
  const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  const char* said = size < 0 ? strerror(errno) : text;
  printf("f %s %.*s\n", below(path), (int)strcspn(said, "\n"), said);
  if (fd >= 0) close(fd);
}

/* The program's working directory may be another one, so `name` leads to the file that `path` shows. */
static void show(const char* path, int folder, const char* name, const struct stat* status) {
  char target[4096];
  if (S_ISDIR(status->st_mode)) {
    printf("d %s\n", below(path));
  } else if (S_ISLNK(status->st_mode)) {
    const ssize_t size = readlinkat(folder, name, target, sizeof target);
    printf("l %s %.*s\n", below(path), (int)size, target);
  } else {
    show_contents(path, openat(folder, name, O_RDONLY | O_CLOEXEC));
  }
}

static int is_dots(const char* name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Whole paths: opendir(), readdir(), lstat(), readlink(), fopen(). */
static void by_readdir(const char* folder) {
  DIR* list = opendir(folder);
  if (list == NULL) return perror(folder);
  for (struct dirent* entry; (entry = readdir(list)) != NULL;) {
    char path[4096];
    struct stat status;
    if (is_dots(entry->d_name)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (lstat(path, &status) != 0) {
      perror(path);
      continue;
    }
    show(path, AT_FDCWD, path, &status);
    if (S_ISDIR(status.st_mode)) by_readdir(path);
  }
  closedir(list);
}

static void by_scandir(const char* folder) {
  struct dirent** names = NULL;
  const int count = scandir(folder, &names, NULL, alphasort);
  if (count < 0) return perror(folder);
  for (int i = 0; i < count; i++) {
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    if (!is_dots(names[i]->d_name) && lstat(path, &status) == 0) {
      show(path, AT_FDCWD, path, &status);
      if (S_ISDIR(status.st_mode)) by_scandir(path);
    }
    free(names[i]);
  }
  free(names);
}

/* From folder to folder: openat(), fstatat(), readlinkat(). */
static void by_openat(const char* folder, int fd) {
  DIR* list = fdopendir(fd);
  if (list == NULL) return perror(folder);
  for (struct dirent* entry; (entry = readdir(list)) != NULL;) {
    char path[4096];
    struct stat status;
    if (is_dots(entry->d_name) || fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    show(path, dirfd(list), entry->d_name, &status);
    if (S_ISDIR(status.st_mode)) {
      by_openat(path, openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
  }
  closedir(list);
}

/* As Rust's standard library does it. */
static void by_statx(const char* folder, int fd) {
  _Alignas(struct dirent64) char entries[2048];
  for (ssize_t size; (size = getdents64(fd, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      const struct dirent64* entry = (const struct dirent64*)(entries + at);
      char path[4096];
      struct statx status;
      at += entry->d_reclen;
      if (is_dots(entry->d_name) || statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) != 0) continue;
      snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
      const struct stat same = {.st_mode = status.stx_mode};
      show(path, fd, entry->d_name, &same);
      if (S_ISDIR(same.st_mode)) by_statx(path, openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
  }
  close(fd);
}

/* From working directory to working directory. */
static void by_chdir(const char* folder) {
  char here[4096];
  DIR* list = opendir(".");
  if (list == NULL || getcwd(here, sizeof here) == NULL) return perror(folder);
  /* The name of a folder is what getcwd() shows. */
  if (strcmp(here + strlen(here) - strlen(below(folder)), below(folder)) != 0 && strcmp(folder, top) != 0) {
    printf("getcwd() in %s: %s\n", folder, here);
  }
  for (struct dirent* entry; (entry = readdir(list)) != NULL;) {
    char path[4096];
    struct stat status;
    if (is_dots(entry->d_name) || lstat(entry->d_name, &status) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    show(path, AT_FDCWD, entry->d_name, &status);
    if (!S_ISDIR(status.st_mode)) continue;
    if (chdir(entry->d_name) != 0) perror(path);
    by_chdir(path);
    if (chdir("..") != 0) perror(path);
  }
  closedir(list);
}

static void by_glob(const char* folder) {
  char pattern[4096];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/*", folder);
  if (glob(pattern, 0, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct stat status;
    if (lstat(found.gl_pathv[i], &status) != 0) continue;
    show(found.gl_pathv[i], AT_FDCWD, found.gl_pathv[i], &status);
    if (S_ISDIR(status.st_mode)) by_glob(found.gl_pathv[i]);
  }
  globfree(&found);
}

static int visited(const char* path, const struct stat* status, int type, struct FTW* place) {
  if (type == FTW_NS || strchr(path + place->base, '/') != NULL) printf("nftw: %s\n", path);
  if (place->level > 0) show(path, AT_FDCWD, path, status);
  return 0;
}

static void by_fts(char* folder, int options) {
  char* const names[] = {folder, NULL};
  FTS* const list = fts_open(names, options, NULL);
  if (list == NULL) return perror(folder);
  for (FTSENT* entry; (entry = fts_read(list)) != NULL;) {
    if (entry->fts_info == FTS_DP || entry->fts_level == 0) continue;
    if (entry->fts_pathlen != strlen(entry->fts_path)) printf("fts: length %d\n", entry->fts_pathlen);
    show(entry->fts_path, AT_FDCWD, entry->fts_accpath, entry->fts_statp);
  }
  fts_close(list);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const char* way = words[1];
  top = words[2];
  const int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (strcmp(way, "readdir") == 0) by_readdir(top);
  if (strcmp(way, "scandir") == 0) by_scandir(top);
  if (strcmp(way, "openat") == 0) by_openat(top, dup(fd));
  if (strcmp(way, "statx") == 0) by_statx(top, dup(fd));
  if (strcmp(way, "chdir") == 0 && chdir(top) == 0) by_chdir(top);
  if (strcmp(way, "fchdir") == 0 && fchdir(fd) == 0) by_chdir(top);
  if (strcmp(way, "glob") == 0) by_glob(top);
  if (strcmp(way, "nftw") == 0) nftw(top, visited, 16, FTW_PHYS);
  if (strcmp(way, "fts") == 0) by_fts(words[2], FTS_PHYSICAL);
  if (strcmp(way, "fts-nochdir") == 0) by_fts(words[2], FTS_PHYSICAL | FTS_NOCHDIR);
  close(fd);
  return ferror(stdout);
}
