/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A module that looks like a libibverbs before rdma-core 36 and lists devices as those do: by netlink, or with
 * OLD_LISTS_FOLDER, as the oldest do, by the kernel's folder. Its "ping_pong" lists the devices and fails, because an
 * old libibverbs finds no driver for the software device.
 */
#include <dirent.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

/* Every libibverbs has it. */
SHOWN void old_query_device(void) __asm__("ibv_query_device");
void old_query_device(void) {}

/* The function with which drivers of rdma-core 25 registered. */
SHOWN void verbs_register_driver_25(const void* operations);
void verbs_register_driver_25(const void* operations) {
  (void)operations;
}

SHOWN void** old_get_device_list(int* count) __asm__("ibv_get_device_list");
void** old_get_device_list(int* count) {
  bool seen = false;
#ifdef OLD_LISTS_FOLDER
  DIR* folder = opendir("/sys/class/infiniband_verbs");
  if (folder == NULL) return NULL;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) seen |= strncmp(entry->d_name, "uverbs", 6) == 0;
  closedir(folder);
#else
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (fd >= 0) close(fd);
  seen = fd >= 0;
#endif
  *count = seen ? 1 : 0;
  return NULL;
}

SHOWN int ping_pong(void);
int ping_pong(void) {
  int count = 0;
  old_get_device_list(&count);
  return count == 1 ? 1 : 0;
}
