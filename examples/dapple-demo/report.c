/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* speaking_role = "dapple-demo";

void report_set_role(const char* role) {
  speaking_role = role;
}

void fail(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fflush(stdout);
  fprintf(stderr, "%s: %s\n", speaking_role, line);
  exit(1);
}

const char* dat_name(DAT_RETURN result) {
  static char name[128];
  const char* type = NULL;
  const char* subtype = NULL;
  if (dat_strerror(result, &type, &subtype) != DAT_SUCCESS) {
    snprintf(name, sizeof name, "0x%08x", (unsigned)result);
  } else if (!subtype || !subtype[0] || strcmp(subtype, "DAT_NO_SUBTYPE") == 0) {
    snprintf(name, sizeof name, "%s", type);
  } else {
    snprintf(name, sizeof name, "%s %s", type, subtype);
  }
  return name;
}

void must(DAT_RETURN result, const char* call, const char* advice) {
  if (result != DAT_SUCCESS) {
    fail("%s: %s; %s", call, dat_name(result), advice);
  }
}
