/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/api/resources.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int count_entries(const char* folder) {
  int count = 0;
  DIR* open = opendir(folder);
  const struct dirent* entry;
  while (open && (entry = readdir(open)) != NULL) count += entry->d_name[0] != '.';
  if (open) closedir(open);
  return count;
}

static size_t resident_bytes(void) {
  unsigned long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void read_device(char* text, size_t size) {
  FILE* tool = popen("rdma resource show", "r");
  size_t length = tool ? fread(text, 1, size - 1, tool) : 0;
  text[length] = '\0';
  if (!tool || pclose(tool) != 0) snprintf(text, size, "rdma resource show failed");
}

void count_resources(struct resources* out) {
  read_device(out->device, sizeof out->device);
  out->fds = count_entries("/proc/self/fd");
  out->threads = count_entries("/proc/self/task");
  out->heap_bytes = mallinfo2().uordblks;
  out->rss_bytes = resident_bytes();
}

bool no_more_than(const struct resources* before, size_t heap_allowance, size_t rss_allowance) {
  struct resources now;
  for (int patience = 100;; --patience) {
    count_resources(&now);
    if (strstr(now.device, "failed")) break;
    if (now.fds <= before->fds && now.threads <= before->threads &&
        now.heap_bytes <= before->heap_bytes + heap_allowance && now.rss_bytes <= before->rss_bytes + rss_allowance &&
        strcmp(now.device, before->device) == 0) {
      return true;
    }
    if (patience == 0) break;
    usleep(100000);
  }
  fprintf(stderr, "before: %d fds, %d threads, %zu bytes of heap, %zu resident; %s", before->fds, before->threads,
          before->heap_bytes, before->rss_bytes, before->device);
  fprintf(stderr, "now:    %d fds, %d threads, %zu bytes of heap, %zu resident; %s", now.fds, now.threads,
          now.heap_bytes, now.rss_bytes, now.device);
  return false;
}
