/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* A provider that crashes its process, for programs that must survive that. */
#include <dat2/dat_registry.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* params) {
  (void)info;
  (void)params;
  abort();
}

EXPORTED void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  (void)info;
}
