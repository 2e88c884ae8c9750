/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * undisturbed: a program without RDMA that calls the functions which the doors replace, and prints their results. These
 * are the same with and without dapple-run.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

/* early.c */
const char* early_word(void);

static void show(const char* what, long result) {
  printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static void folders(const char* folder) {
  long names = 0;
  DIR* list = opendir(folder);
  while (list != NULL && readdir(list) != NULL) names++;
  if (list != NULL) closedir(list);
  show("names in the folder", names);
  show("no folder", opendir("/no/such/folder") == NULL ? -1 : 0);
  show("no folder, but a file", opendir("/dev/null") == NULL ? -1 : 0);
}

static void files(const char* folder) {
  char path[4096];
  char bytes[16] = "";
  struct stat status;
  struct statx extended;
  FILE* file;
  snprintf(path, sizeof path, "%s/file", folder);
  umask(022);
  const int fd = open(path, O_CREAT | O_RDWR, 0640);
  show("create", fd);
  show("write", write(fd, "text", 4));
  show("fstat", fstat(fd, &status));
  show("mode", status.st_mode);
  show("size", status.st_size);
  show("stat", stat(path, &status));
  show("statx", statx(AT_FDCWD, path, 0, STATX_SIZE, &extended));
  show("statx size", (long)extended.stx_size);
  show("access", access(path, X_OK));
  show("ioctl", ioctl(fd, TIOCGWINSZ, bytes));
  show("close", close(fd));
  show("close again", close(fd));
  show("openat", openat(AT_FDCWD, path, O_RDONLY));
  show("temporary", openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600));
  show("missing", open("/no/such/file", O_RDONLY));
  show("missing uverbs", open("/dev/infiniband/uverbs77", O_RDWR));
  show("stat missing", stat("/dev/infiniband/uverbs77", &status));
  file = fopen(path, "r");
  show("fopen", file != NULL && fgets(bytes, sizeof bytes, file) != NULL ? (long)strlen(bytes) : -1);
  if (file != NULL) fclose(file);
}

static void copies(void) {
  int ends[2];
  char byte = 0;
  show("pipe", pipe(ends));
  show("dup", dup(ends[1]));
  show("dup2", dup2(ends[1], 50));
  show("dup2 of itself", dup2(50, 50));
  show("dup2 of nothing", dup2(999, 51));
  show("dup3", dup3(ends[1], 52, O_CLOEXEC));
  show("fcntl", fcntl(ends[1], F_DUPFD, 60));
  show("fcntl of nothing", fcntl(999, F_DUPFD, 60));
  show("write to a copy", write(60, "x", 1));
  show("read", read(ends[0], &byte, 1));
  show("close_range", close_range(3, ~0U, 0));
  show("write to nothing", write(60, "x", 1));
  show("lowest number", open("/dev/null", O_WRONLY));
  closefrom(3);
  show("lowest number again", open("/dev/null", O_WRONLY));
}

/* Container managers forbid system calls that they do not know. */
static void closing_without_close_range(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    show("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    dup2(1, 40);
    dup2(1, 500);
    show("forbidden close_range", close_range(3, ~0U, 0));
    show("not closed", fcntl(40, F_GETFD));
    closefrom(3);
    show("closed", fcntl(40, F_GETFD));
    show("closed, too", fcntl(500, F_GETFD));
    show("lowest number", open("/dev/null", O_WRONLY));
    _exit(0);
  }
  show("without close_range", status_of(child));
}

/* A compiler calls this function instead of open() if it does not know the flags. */
int __open_2(const char* path, int flags);

static void opening_without_a_mode(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/no-mode", folder);
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(open("/dev/null", O_WRONLY), 2);
    _exit(__open_2(path, O_CREAT | O_WRONLY) >= 0);
  }
  show("creation without a mode", status_of(child));
  show("not created", access(path, F_OK));
  show("without creation", __open_2("/no/such/file", O_RDONLY));
}

static void children(void) {
  char* command[] = {"sh", "-c", "ls /proc/self/fd | wc -l", NULL};
  pid_t child = fork();
  if (child == 0) {
    closefrom(3);
    execvp(command[0], command);
    _exit(1);
  }
  show("fork", status_of(child));
  child = vfork();
  if (child == 0) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    execvp(command[0], command);
    _exit(1);
  }
  show("vfork", status_of(child));
  posix_spawnp(&child, command[0], NULL, NULL, command, environ);
  show("spawn", status_of(child));
  show("system", system("exit 3"));
}

static void sockets(void) {
  int ends[2];
  show("netlink", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
  show("no socket", socket(AF_NETLINK, SOCK_RAW, 99));
  show("pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
  show("send", send(ends[0], "ab", 2, 0));
  show("sendto", sendto(ends[0], "abc", 3, 0, NULL, 0));
  struct iovec piece = {.iov_base = "abcd", .iov_len = 4};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
  show("sendmsg", sendmsg(ends[0], &message, 0));
}

/* The next library after the caller's, which the C library finds by the return address. */
static void symbols(void) {
  Dl_info info = {0};
  void* next = dlsym(RTLD_NEXT, "malloc");
  printf("next malloc: %s\n", next != NULL && dladdr(next, &info) != 0 ? info.dli_fname : "none");
  next = dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");
  printf("next realpath: %s\n", next != NULL && dladdr(next, &info) != 0 ? info.dli_fname : "none");
  printf("own: %d\n", dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL);
  printf("error: %d\n", dlerror() != NULL);
}

static int in_handler;

/* Every async-signal-safe function stays so. */
static void handler(int signal_number) {
  (void)signal_number;
  struct stat status;
  const int fd = open("/dev/null", O_WRONLY);
  const int copy = dup(fd);
  in_handler = write(copy, "x", 1) == 1 && fstat(copy, &status) == 0 && close(copy) == 0 && close(fd) == 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  printf("in a constructor: %s\n", early_word());
  folders(argv[1]);
  files(argv[1]);
  copies();
  closing_without_close_range();
  opening_without_a_mode(argv[1]);
  children();
  sockets();
  symbols();
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  show("in a handler", in_handler);
  return 0;
}
