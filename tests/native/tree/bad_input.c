/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bad-input FOLDER: unusual paths into and out of the tree, writes, and the ways in which a program passes a folder or
 * a file of the tree on. FOLDER is an empty folder. With "child" it is the program that the test starts in the tree.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/native/doors/check.h"

#define CLASS "/sys/class/infiniband"
#define REAL "/sys/devices/virtual/infiniband/dapple0"

static const char* program;

static int same_file(const char* path, const char* other) {
  struct stat a;
  struct stat b;
  return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int is_guid(int fd) {
  char text[64] = "";
  const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
  if (fd >= 0) close(fd);
  return size == 20 && text[4] == ':' && text[19] == '\n';
}

static int opens(const char* path) {
  return is_guid(open(path, O_RDONLY));
}

static int fails(int result, int error) {
  return result == -1 && errno == error;
}

static void odd_paths(const char* folder) {
  char path[PATH_MAX];
  char name[NAME_MAX + 64] = CLASS "/";
  char* whole;
  CHECK(opens(CLASS "/dapple0/node_guid"));
  CHECK(opens("/sys/./class//infiniband/dapple0/../dapple0/./node_guid"));
  CHECK(opens("//sys/class/infiniband/dapple0/node_guid"));
  CHECK(opens("/./sys/class/infiniband/dapple0/node_guid"));
  CHECK(opens("/proc/self/root/sys/class/infiniband/dapple0/node_guid"));
  CHECK(opens("/proc/../sys/class/infiniband/dapple0/node_guid"));
  CHECK(same_file(CLASS "/../net/lo/address", "/sys/class/net/lo/address"));
  CHECK(same_file(CLASS "/dapple0/subsystem/../../../proc/version", "/proc/version"));
  CHECK(same_file(CLASS "/dapple0/", REAL));
  CHECK(fails(open(CLASS "/dapple0/node_guid/", O_RDONLY), ENOTDIR));
  CHECK(fails(open(CLASS "/dapple0/node_guid/x", O_RDONLY), ENOTDIR));
  CHECK(fails(open(CLASS "/dapple0/nothing", O_RDONLY), ENOENT));
  CHECK(fails(open(CLASS "/nothing/node_guid", O_RDONLY), ENOENT));
  memset(name + strlen(name), 'x', NAME_MAX + 1);
  CHECK(fails(open(name, O_RDONLY), ENAMETOOLONG));
  CHECK(fails(chdir(name), ENAMETOOLONG));
  whole = malloc(2 * PATH_MAX);
  strcpy(whole, CLASS);
  for (size_t i = strlen(whole); i < PATH_MAX + 10; i += 2) strcpy(whole + i, "/.");
  CHECK(fails(open(whole, O_RDONLY), ENAMETOOLONG));
  CHECK(realpath(whole, NULL) == NULL && errno == ENAMETOOLONG);
  free(whole);

  snprintf(path, sizeof path, "%s/into", folder);
  CHECK(symlink(CLASS "/dapple0", path) == 0);
  CHECK(readlink(path, name, sizeof name) == (ssize_t)strlen(CLASS "/dapple0"));
  whole = realpath(path, NULL);
  CHECK(whole != NULL && strcmp(whole, REAL) == 0);
  free(whole);
  strcat(path, "/node_guid");
  CHECK(opens(path));
  whole = canonicalize_file_name(CLASS "/dapple0/../dapple0/ports");
  CHECK(whole != NULL && strcmp(whole, REAL "/ports") == 0);
  free(whole);
  CHECK(realpath(CLASS "/dapple0/nothing", NULL) == NULL && errno == ENOENT);
  CHECK(fails(open("", O_RDONLY), ENOENT));
}

/* A write must not reach the real file, which belongs to this program's user. */
static void writes(void) {
  const int folder = open(CLASS "/dapple0", O_RDONLY | O_DIRECTORY);
  struct stat status;
  char path[64];
  int fd;
  CHECK(fails(open(CLASS "/dapple0/node_guid", O_WRONLY), EACCES));
  CHECK(fails(open(CLASS "/dapple0/node_guid", O_RDWR | O_TRUNC), EACCES));
  CHECK(fails(open(CLASS "/dapple0/node_guid", O_RDONLY | O_TRUNC), EACCES));
  CHECK(fails(open(CLASS "/dapple0/mine", O_WRONLY | O_CREAT, 0644), EACCES));
  CHECK(fails(open(CLASS "/dapple0/node_guid", O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST));
  CHECK(fails(creat(CLASS "/dapple0/node_guid", 0644), EACCES));
  CHECK(fopen(CLASS "/dapple0/node_guid", "w") == NULL && errno == EACCES);
  CHECK(fopen(CLASS "/dapple0/node_guid", "r+") == NULL && errno == EACCES);
  CHECK(fails(openat(folder, "node_guid", O_WRONLY | O_TRUNC), EACCES));
  CHECK(fails(openat(folder, "mine", O_WRONLY | O_CREAT, 0644), EACCES));
  CHECK(fails(open(CLASS, O_RDWR), EISDIR));
  CHECK(fails(access(CLASS "/dapple0/node_guid", W_OK), EACCES));
  CHECK(access(CLASS "/dapple0/node_guid", R_OK) == 0);
  CHECK(fails(access(CLASS "/dapple0/node_guid", X_OK), EACCES));
  CHECK(fails(truncate(CLASS "/dapple0/node_guid", 0), EACCES));
  CHECK(fails(unlink(CLASS "/dapple0/node_guid"), EPERM));
  CHECK(fails(unlinkat(folder, "node_guid", 0), EPERM));
  CHECK(fails(mkdirat(folder, "mine", 0755), EPERM));
  CHECK(fails(renameat(folder, "node_guid", folder, "other"), EPERM));
  CHECK(fails(symlinkat("/", folder, "mine"), EPERM));
  CHECK(fails(fchmodat(folder, "node_guid", 0666, 0), EPERM));
  CHECK(fails(utimensat(folder, "node_guid", NULL, 0), EPERM));
  CHECK(fails(fchmod(folder, 0777), EPERM));
  snprintf(path, sizeof path, "/proc/self/fd/%d/node_guid", folder);
  CHECK(fails(open(path, O_WRONLY), EACCES));
  CHECK(fails(unlink(path), EPERM));
  fd = open(path, O_RDONLY);
  snprintf(path, sizeof path, "/dev/fd/%d", fd);
  CHECK(fails(open(path, O_RDWR), EACCES));
  CHECK(opens(path) && is_guid(fd));
  snprintf(path, sizeof path, "/proc/%d/fd/%d/mine", (int)getpid(), folder);
  CHECK(fails(open(path, O_WRONLY | O_CREAT, 0644), EACCES));
  CHECK(fails(mkdir(path, 0755), EPERM));
  CHECK(fails(fchown(folder, getuid(), getgid()), EPERM));
  CHECK(fails(futimens(folder, NULL), EPERM));
  CHECK(chdir(CLASS "/dapple0") == 0);
  CHECK(fails(open("node_guid", O_WRONLY | O_TRUNC), EACCES));
  CHECK(fails(unlink("node_guid"), EPERM));
  CHECK(fails(rename("node_guid", "other"), EPERM));
  CHECK(fails(mkdir("mine", 0755), EPERM));
  CHECK(fails(unlink("/proc/self/cwd/node_guid"), EPERM));
  CHECK(opens("node_guid"));
  CHECK(chdir("/") == 0);
  CHECK(stat(CLASS "/dapple0/mine", &status) == -1 && errno == ENOENT);
  CHECK(opens(CLASS "/dapple0/node_guid"));
  close(folder);
}

static void seen_as_sysfs(void) {
  struct stat named;
  struct stat opened;
  struct statx extended;
  struct statfs system;
  struct statvfs same_system;
  const int fd = open(CLASS "/dapple0/node_guid", O_RDONLY);
  CHECK(stat(CLASS "/dapple0/node_guid", &named) == 0 && fstat(fd, &opened) == 0);
  CHECK(named.st_ino == opened.st_ino && named.st_size == 4096 && opened.st_size == 4096);
  CHECK(named.st_uid == 0 && opened.st_uid == 0 && S_ISREG(opened.st_mode));
  CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) == 0 && extended.stx_size == 4096);
  CHECK(statx(AT_FDCWD, CLASS "/dapple0/node_guid", 0, STATX_BASIC_STATS, &extended) == 0 && extended.stx_uid == 0);
  CHECK(lstat(CLASS "/dapple0", &named) == 0 && S_ISLNK(named.st_mode));
  CHECK(fstatfs(fd, &system) == 0 && system.f_type == SYSFS_MAGIC);
  CHECK(fstatvfs(fd, &same_system) == 0 && same_system.f_bsize == (unsigned long)system.f_bsize);
  CHECK(pathconf(CLASS, _PC_NAME_MAX) == NAME_MAX);
  CHECK(statfs(CLASS, &system) == 0);
  CHECK(fails((int)getxattr(CLASS "/dapple0/node_guid", "user.x", NULL, 0), ENOTSUP));
  CHECK(listxattr(CLASS "/dapple0/node_guid", NULL, 0) == 0);
  close(fd);
}

static void places(void) {
  char path[PATH_MAX];
  char link[64];
  char* name;
  int fd = open(CLASS "/dapple0/ports", O_PATH | O_DIRECTORY);
  CHECK(fd >= 0);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  memset(path, 0, sizeof path);
  CHECK(readlink(link, path, sizeof path) > 0 && strcmp(path, REAL "/ports") == 0);
  CHECK(readlink(link, path, 4) == 4);
  CHECK(is_guid(openat(fd, "../node_guid", O_RDONLY)));
  CHECK(is_guid(openat(fd, "../../../../../class/infiniband/dapple0/node_guid", O_RDONLY)));
  CHECK(fchdir(fd) == 0);
  CHECK(getcwd(path, sizeof path) == path && strcmp(path, REAL "/ports") == 0);
  CHECK(getcwd(path, 5) == NULL && errno == ERANGE);
  name = getcwd(NULL, 0);
  CHECK(name != NULL && strcmp(name, REAL "/ports") == 0);
  free(name);
  unsetenv("PWD");
  name = get_current_dir_name();
  CHECK(name != NULL && strcmp(name, REAL "/ports") == 0);
  free(name);
  setenv("PWD", CLASS "/dapple0/ports", 1);
  name = get_current_dir_name();
  CHECK(name != NULL && strcmp(name, CLASS "/dapple0/ports") == 0);
  free(name);
  memset(path, 0, sizeof path);
  CHECK(readlink("/proc/self/cwd", path, sizeof path) > 0 && strcmp(path, REAL "/ports") == 0);
  name = realpath(".", NULL);
  CHECK(name != NULL && strcmp(name, REAL "/ports") == 0);
  free(name);
  CHECK(same_file("../../../../../class/net/lo/address", "/sys/class/net/lo/address"));
  CHECK(chdir("..") == 0 && opens("node_guid") && chdir("/") == 0);
  const int copy = dup(fd);
  close(fd);
  CHECK(is_guid(openat(copy, "../node_guid", O_RDONLY)));
  close(copy);
  CHECK(fails(chdir(CLASS "/dapple0/node_guid"), ENOTDIR));
  FILE* stream = fopen("/dev/null", "r");
  char text[64] = "";
  stream = freopen(CLASS "/dapple0/node_guid", "r", stream);
  CHECK(stream != NULL && fgets(text, sizeof text, stream) != NULL && text[4] == ':');
  if (stream != NULL) fclose(stream);
}

static int ended_well(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

/* The child has the working directory and the descriptor, and has never seen the tree's folder. */
static void started(int descriptor) {
  char number[16];
  char path[PATH_MAX];
  memset(path, 0, sizeof path);
  snprintf(number, sizeof number, "/proc/self/fd/%d", descriptor);
  CHECK(is_guid(openat(descriptor, "node_guid", O_RDONLY)));
  CHECK(fails(openat(descriptor, "node_guid", O_WRONLY | O_TRUNC), EACCES));
  CHECK(readlink(number, path, sizeof path) > 0 && strcmp(path, REAL) == 0);
  CHECK(getcwd(path, sizeof path) == path && strcmp(path, REAL "/ports") == 0);
  CHECK(opens("../node_guid"));
  CHECK(fails(open("../node_guid", O_WRONLY | O_TRUNC), EACCES));
  CHECK(fails(unlink("../node_guid"), EPERM));
}

static void children(void) {
  char number[16];
  const int folder = open(CLASS "/dapple0", O_RDONLY | O_DIRECTORY);
  char* words[] = {(char*)program, (char*)"child", number, NULL};
  snprintf(number, sizeof number, "%d", folder);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    failures = 0;
    CHECK(opens(CLASS "/dapple0/node_guid") && is_guid(openat(folder, "node_guid", O_RDONLY)));
    CHECK(chdir(CLASS "/dapple0/ports") == 0);
    fflush(stdout);
    if (failures == 0) execv(program, words);
    _exit(1);
  }
  CHECK(ended_well(child));
  child = vfork();
  if (child == 0) {
    if (chdir(CLASS "/dapple0/ports") == 0) execv(program, words);
    _exit(1);
  }
  CHECK(ended_well(child));
  /* The parent's working directory and folder are as before. */
  char path[PATH_MAX];
  CHECK(getcwd(path, sizeof path) == path && strcmp(path, "/") == 0);
  CHECK(opens(CLASS "/dapple0/node_guid"));
  close(folder);
  closefrom(3);
  CHECK(opens(CLASS "/dapple0/node_guid"));
  for (int fd = 3; fd < 70000; fd++) close(fd);
  CHECK(opens(CLASS "/dapple0/node_guid"));
}

static void* read_often(void* result) {
  int good = 1;
  for (int i = 0; i < 200; i++) good &= opens(CLASS "/dapple0/node_guid") && access(CLASS, X_OK) == 0;
  *(int*)result = good;
  return NULL;
}

static atomic_int handled;

static void read_in_handler(int number) {
  (void)number;
  const int error = errno;
  handled += opens(CLASS "/dapple0/node_guid");
  errno = error;
}

static void threads_and_signals(void) {
  pthread_t threads[4];
  int good[4] = {0};
  int rounds = 0;
  signal(SIGUSR1, read_in_handler);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, read_often, &good[i]);
  for (; rounds < 50; rounds++) pthread_kill(threads[rounds % 4], SIGUSR1);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) CHECK(good[i]);
  raise(SIGUSR1);
  CHECK(handled > 0);
}

int main(int count, char** words) {
  if (count < 2) return 2;
  program = words[0];
  if (strcmp(words[1], "child") == 0) {
    started(atoi(words[2]));
    return failures != 0;
  }
  if (chdir("/") != 0) return 2;
  odd_paths(words[1]);
  seen_as_sysfs();
  writes();
  places();
  children();
  threads_and_signals();
  printf("%d failed\n", failures);
  return failures != 0;
}
