/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* The kernel's letter for the state of a process or a thread: R runs, S sleeps, T is stopped. A space: it is gone. */
static inline char task_state(pid_t task) {
  char path[64], line[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", task);
  FILE* file = fopen(path, "re");
  if (file == NULL) return ' ';
  const char* read = fgets(line, sizeof line, file);
  fclose(file);
  /* The name before the state is in parentheses and may contain some. */
  const char* name_end = read == NULL ? NULL : strrchr(line, ')');
  return name_end != NULL && strlen(name_end) > 2 ? name_end[2] : ' ';
}
