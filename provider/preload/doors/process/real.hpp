// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The C library's functions that this library interposes. Before the constructor of this library has run, they are bare
// system calls, except fopen() and opendir(), which are looked up at each call. From then on they are the next
// functions in the order of look-up, which may be a sanitizer's.
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

struct stat;
struct statx;

namespace dapple::doors {

struct Real {
  int (*open)(const char* path, int flags, ...);
  int (*openat)(int folder, const char* path, int flags, ...);
  FILE* (*fopen)(const char* path, const char* mode);
  DIR* (*opendir)(const char* path);
  int (*access)(const char* path, int mode);
  int (*faccessat)(int folder, const char* path, int mode, int flags);
  int (*stat)(const char* path, struct stat* status);
  int (*lstat)(const char* path, struct stat* status);
  int (*fstat)(int fd, struct stat* status);
  int (*fstatat)(int folder, const char* path, struct stat* status, int flags);
  // Old programs' names for the four above.
  int (*xstat)(int version, const char* path, struct stat* status);
  int (*lxstat)(int version, const char* path, struct stat* status);
  int (*fxstat)(int version, int fd, struct stat* status);
  int (*fxstatat)(int version, int folder, const char* path, struct stat* status, int flags);
  int (*statx)(int folder, const char* path, int flags, unsigned mask, struct statx* status);
  int (*close)(int fd);
  int (*dup)(int fd);
  int (*dup2)(int fd, int number);
  int (*dup3)(int fd, int number, int flags);
  int (*fcntl)(int fd, int command, ...);
  int (*close_range)(unsigned first, unsigned last, int flags);
  ssize_t (*write)(int fd, const void* bytes, size_t size);
  int (*ioctl)(int fd, unsigned long request, ...);
  int (*socket)(int domain, int type, int protocol);
  ssize_t (*send)(int fd, const void* bytes, size_t size, int flags);
  ssize_t (*sendto)(int fd, const void* bytes, size_t size, int flags, const sockaddr* to, socklen_t to_size);
  ssize_t (*sendmsg)(int fd, const msghdr* message, int flags);
};

extern Real real;

}  // namespace dapple::doors
