// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/network/socket_process.hpp"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace dapple::soft {
namespace {

bool holds(const char* process, const char* wanted) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%.20s/fd", process);
  DIR* folder = opendir(path);
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(folder)) {
    char target[64];
    const ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = '\0';
    found = strcmp(target, wanted) == 0;
  }
  closedir(folder);
  return found;
}

}  // namespace

SocketProcess find_socket_process(unsigned long inode) {
  SocketProcess holder;
  char wanted[64];
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return holder;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !holds(entry->d_name, wanted)) continue;
    holder.process = atoi(entry->d_name);
    name_program(holder.process, holder.program);
    break;
  }
  closedir(folder);
  return holder;
}

void name_program(pid_t process, char (&program)[32]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/comm", process);
  program[0] = '\0';
  FILE* file = fopen(path, "re");
  if (file == nullptr) return;
  if (fgets(program, sizeof program, file) == nullptr) program[0] = '\0';
  program[strcspn(program, "\n")] = '\0';
  fclose(file);
}

}  // namespace dapple::soft
