/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The value of a provider-specific attribute, or "-": each provider has its own names. */
static const char* attribute(const struct session* session, const char* name) {
  const DAT_PROVIDER_ATTR* attr = &session->provider_attr;
  for (DAT_COUNT i = 0; i < attr->num_provider_specific_attr; i++) {
    const DAT_NAMED_ATTR* named = &attr->provider_specific_attr[i];
    if (named->name && named->value && strcmp(named->name, name) == 0 && named->value[0]) {
      return named->value;
    }
  }
  return "-";
}

void table_print_device(const struct session* session) {
  const char* device = attribute(session, "DAT_IB_DEVICE_NAME");
  const char* coherence = attribute(session, "DAPPLE_COHERENCE");
  printf("  %-24s %s (%s)\n", "interface adapter", session->ia_name, session->provider_attr.provider_name);
  printf("  %-24s %s\n", "device", strcmp(device, "-") == 0 ? session->ia_attr.adapter_name : device);
  printf("  %-24s %s, MTU %s\n", "transport", attribute(session, "DAPPLE_TRANSPORT"),
         attribute(session, "DAT_IB_TRANSPORT_MTU"));
  if (strcmp(coherence, "-") == 0) {
    printf("  %-24s -\n", "coherence");
  } else {
    printf("  %-24s %s: %s\n", "coherence", coherence, attribute(session, "DAPPLE_COHERENCE_REASON"));
  }
  const char* line_size = attribute(session, "DAPPLE_LINE_SIZE");
  printf("  %-24s %s%s\n", "cache line", line_size, strcmp(line_size, "-") == 0 ? "" : " bytes");
  printf("  %-24s %s\n", "clean", attribute(session, "DAPPLE_CLEAN_INSTRUCTION"));
  printf("  %-24s %s\n", "clean and invalidate", attribute(session, "DAPPLE_CLEAN_INVALIDATE_INSTRUCTION"));
  printf("  %-24s %s\n", "lmr_sync_req", session->provider_attr.lmr_sync_req ? "true" : "false");
}

void table_print_header(void) {
  printf("\n  %10s %7s %16s %12s %12s\n", "size", "ranges", "bytes verified", "write MB/s", "read MB/s");
}

void table_print_row(const struct row* row) {
  printf("  %10" PRIu64 " %7u %16" PRIu64 " %12.2f %12.2f\n", row->size, row->ranges, row->bytes_verified,
         row->write_mb_s, row->read_mb_s);
  fflush(stdout);
}
