/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/api/resources.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

#define MOST_SLOTS 12 /* dappled starts with a dozen, and these tests run few programs at a time */

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

/* The kernel's counts for all programs, or dappled's: the programs that it serves, and their slots. */
static void read_device(char* text, size_t size) {
  FILE* tool = popen(on_software_device() ? "\"$(dirname \"$(readlink /proc/$PPID/exe)\")\"/dapple-info | "
                                            "grep -E '^(UDP port|dappled:) '"
                                          : "rdma resource show",
                     "r");
  size_t length = tool ? fread(text, 1, size - 1, tool) : 0;
  text[length] = '\0';
  if (!tool || pclose(tool) != 0) snprintf(text, size, "showing the device's resources failed");
}

void count_resources(struct resources* out) {
  read_device(out->device, sizeof out->device);
  out->fds = count_descriptors();
  out->threads = count_entries("/proc/self/task");
  out->heap_bytes = mallinfo2().uordblks;
  out->rss_bytes = resident_bytes();
}

static void show(const char* when, const struct resources* it) {
  fprintf(stderr, "%s %d fds, %d UDP sockets, %d links, %d threads, %zu bytes of heap, %zu resident; %s", when,
          it->fds.others, it->fds.udp_sockets, it->fds.links, it->threads, it->heap_bytes, it->rss_bytes, it->device);
}

bool no_more_than(const struct resources* before, size_t heap_allowance, size_t rss_allowance) {
  const int most = on_software_device() ? MOST_SLOTS : 0;
  struct resources now;
  for (int patience = 100;; --patience) {
    count_resources(&now);
    if (strstr(now.device, "failed")) break;
    if (now.fds.others <= before->fds.others && now.fds.udp_sockets <= most && now.fds.links <= 2 * most &&
        now.threads <= before->threads && now.heap_bytes <= before->heap_bytes + heap_allowance &&
        now.rss_bytes <= before->rss_bytes + rss_allowance && strcmp(now.device, before->device) == 0) {
      return true;
    }
    if (patience == 0) break;
    usleep(100000);
  }
  show("before:", before);
  show("now:   ", &now);
  return false;
}
