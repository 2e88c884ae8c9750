// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/process/real.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dapple::doors {
namespace {

// Other libraries' constructors may run before ours. On 64-bit machines the C library's struct stat is the kernel's.
template <typename Result = int, typename... Arguments>
Result call(long number, Arguments... arguments) {
  return static_cast<Result>(syscall(number, arguments...));
}

int early_openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return call(SYS_openat, folder, path, flags, mode);
}

int early_open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return call(SYS_openat, AT_FDCWD, path, flags, mode);
}

// No system call does the work of these two. They may take locks and memory anyway, so this may look them up.
FILE* early_fopen(const char* path, const char* mode) {
  const auto next = reinterpret_cast<decltype(real.fopen)>(dlsym(RTLD_NEXT, "fopen"));
  return next(path, mode);
}

DIR* early_opendir(const char* path) {
  const auto next = reinterpret_cast<decltype(real.opendir)>(dlsym(RTLD_NEXT, "opendir"));
  return next(path);
}

int early_fstatat(int folder, const char* path, struct stat* status, int flags) {
  return call(SYS_newfstatat, folder, path, status, flags);
}

int early_fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const auto argument = va_arg(list, unsigned long);
  va_end(list);
  return call(SYS_fcntl, fd, command, argument);
}

int early_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  return call(SYS_ioctl, fd, request, argument);
}

}  // namespace

constinit Real real = {
    .open = early_open,
    .openat = early_openat,
    .fopen = early_fopen,
    .opendir = early_opendir,
    .access = [](const char* path, int mode) { return call(SYS_faccessat, AT_FDCWD, path, mode); },
    .faccessat = [](int folder, const char* path, int mode, int) { return call(SYS_faccessat, folder, path, mode); },
    .stat = [](const char* path, struct stat* status) { return early_fstatat(AT_FDCWD, path, status, 0); },
    .lstat = [](const char* path,
                struct stat* status) { return early_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW); },
    .fstat = [](int fd, struct stat* status) { return call(SYS_fstat, fd, status); },
    .fstatat = early_fstatat,
    .xstat = [](int, const char* path, struct stat* status) { return early_fstatat(AT_FDCWD, path, status, 0); },
    .lxstat = [](int, const char* path,
                 struct stat* status) { return early_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW); },
    .fxstat = [](int, int fd, struct stat* status) { return call(SYS_fstat, fd, status); },
    .fxstatat = [](int, int folder, const char* path, struct stat* status,
                   int flags) { return early_fstatat(folder, path, status, flags); },
    .statx = [](int folder, const char* path, int flags, unsigned mask,
                struct statx* status) { return call(SYS_statx, folder, path, flags, mask, status); },
    .close = [](int fd) { return call(SYS_close, fd); },
    .dup = [](int fd) { return call(SYS_dup, fd); },
    .dup2 =
        [](int fd, int number) {
          return fd == number ? call(SYS_fcntl, fd, F_GETFD) < 0 ? -1 : fd : call(SYS_dup3, fd, number, 0);
        },
    .dup3 = [](int fd, int number, int flags) { return call(SYS_dup3, fd, number, flags); },
    .fcntl = early_fcntl,
    .close_range = [](unsigned first, unsigned last, int flags) { return call(SYS_close_range, first, last, flags); },
    .write = [](int fd, const void* bytes, size_t size) { return call<ssize_t>(SYS_write, fd, bytes, size); },
    .ioctl = early_ioctl,
    .socket = [](int domain, int type, int protocol) { return call(SYS_socket, domain, type, protocol); },
    .send = [](int fd, const void* bytes, size_t size,
               int flags) { return call<ssize_t>(SYS_sendto, fd, bytes, size, flags, nullptr, 0); },
    .sendto = [](int fd, const void* bytes, size_t size, int flags, const sockaddr* to,
                 socklen_t to_size) { return call<ssize_t>(SYS_sendto, fd, bytes, size, flags, to, to_size); },
    .sendmsg = [](int fd, const msghdr* message, int flags) { return call<ssize_t>(SYS_sendmsg, fd, message, flags); },
};

namespace {

// If the C library lacks the name, the function stays a system call.
template <typename Function>
void find(Function& function, const char* name) {
  if (void* next = dlsym(RTLD_NEXT, name)) function = reinterpret_cast<Function>(next);
}

[[gnu::constructor(101)]] void find_all() {
  find(real.open, "open");
  find(real.openat, "openat");
  find(real.fopen, "fopen");
  find(real.opendir, "opendir");
  find(real.access, "access");
  find(real.faccessat, "faccessat");
  find(real.stat, "stat");
  find(real.lstat, "lstat");
  find(real.fstat, "fstat");
  find(real.fstatat, "fstatat");
  find(real.xstat, "__xstat");
  find(real.lxstat, "__lxstat");
  find(real.fxstat, "__fxstat");
  find(real.fxstatat, "__fxstatat");
  find(real.statx, "statx");
  find(real.close, "close");
  find(real.dup, "dup");
  find(real.dup2, "dup2");
  find(real.dup3, "dup3");
  find(real.fcntl, "fcntl");
  find(real.close_range, "close_range");
  find(real.write, "write");
  find(real.ioctl, "ioctl");
  find(real.socket, "socket");
  find(real.send, "send");
  find(real.sendto, "sendto");
  find(real.sendmsg, "sendmsg");
}

}  // namespace
}  // namespace dapple::doors
