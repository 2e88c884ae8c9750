/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * open_close [--tight]: opens and closes the first interface adapter of dat.conf 100 times, gracefully and abruptly in
 * turn. Every close must succeed, and with --tight no file descriptor or thread may be left behind.
 *
 * The original registry finds the entry to close by the attributes that the provider reports. So with that registry the
 * program fails if a provider reports other attributes than it was registered with.
 */
#include <dat2/udat.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/softroce/descriptors.h"
#include "tests/softroce/session.h"

enum { kRounds = 100, kFirstRounds = 2, kTries = 500, kPauseUs = 20000 };

static int entries(const char* folder) {
  DIR* open_folder = opendir(folder);
  int count = 0;
  if (!open_folder) {
    fail("cannot list %s", folder);
  }
  while (readdir(open_folder)) {
    count++;
  }
  closedir(open_folder);
  return count;
}

/* A thread that has been joined may still be listed while the kernel removes it. */
static int threads_left(int expected) {
  int count = entries("/proc/self/task");
  for (int tries = 0; count > expected && tries < kTries; tries++) {
    usleep(kPauseUs);
    count = entries("/proc/self/task");
  }
  return count;
}

int main(int argc, char** argv) {
  DAT_PROVIDER_INFO info;
  DAT_PROVIDER_INFO* list = &info;
  DAT_COUNT listed = 0;
  int descriptors = 0;
  int threads = 0;
  int tight = argc > 1 && strcmp(argv[1], "--tight") == 0;

  set_role("open_close");
  must(dat_registry_list_providers(1, &listed, &list), "dat_registry_list_providers");
  if (listed != 1) {
    fail("%d interface adapters are listed instead of 1", (int)listed);
  }
  for (int round = 0; round < kRounds; round++) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    must(dat_ia_open(info.ia_name, 8, &async_evd, &ia), "dat_ia_open");
    must(dat_ia_close(ia, round % 2 == 0 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
    if (round == kFirstRounds) {
      descriptors = count_descriptors().others;
      threads = entries("/proc/self/task");
    }
  }
  if (tight && (other_descriptors_settle(descriptors) > descriptors || threads_left(threads) > threads)) {
    fail("%d descriptors and %d threads became %d and %d", descriptors, threads, count_descriptors().others,
         entries("/proc/self/task"));
  }
  printf("opened and closed %d times\n", (int)kRounds);
  return 0;
}
