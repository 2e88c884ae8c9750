/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The DAT 2.0 headers against the facts of the ABI: every constant, size, offset, prototype and table slot. The
 * compiler checks nearly all of it. If the original's headers are available, the file is built with them as well: a
 * fact that fails with them too is recorded wrongly.
 */
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The original's headers compile in this order only. */
/* clang-format off */
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
/* clang-format on */

#if !defined(__LP64__)
int main(void) {
  puts("SKIP: the recorded facts are those of LP64");
  return 77;
}
#else

#define SAME_FUNCTION(what, args) __builtin_types_compatible_p(__typeof__(what), DAT_RETURN args)
#define MEMBER_OF(type, member) (((type*)0)->member)

#define DAT20_CONSTANT(name, value) _Static_assert((long long)(name) == (value), #name);
#define DAT20_POINTER(name, value)
#define DAT20_STRING(name, value)
#define DAT20_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type);
#define DAT20_MEMBER(type, member, offset, size)                     \
  _Static_assert(offsetof(type, member) == (offset), #type #member); \
  _Static_assert(sizeof(MEMBER_OF(type, member)) == (size), #type #member);
#define DAT20_FUNCTION(name, args) _Static_assert(SAME_FUNCTION(name, args), #name);
#define DAT20_SLOT(slot, args) _Static_assert(SAME_FUNCTION(*MEMBER_OF(DAT_PROVIDER, slot), args), #slot);
#include "dat20_facts.inc"
#undef DAT20_CONSTANT
#undef DAT20_POINTER
#undef DAT20_STRING
#undef DAT20_SIZE
#undef DAT20_MEMBER
#undef DAT20_FUNCTION
#undef DAT20_SLOT

#define DAT20_CONSTANT(name, value)
#define DAT20_POINTER(name, value) {#name, NULL, NULL, (uintptr_t)(name), value},
#define DAT20_STRING(name, value) {#name, name, value, 0, 0},
#define DAT20_SIZE(type, size)
#define DAT20_MEMBER(type, member, offset, size)
#define DAT20_FUNCTION(name, args)
#define DAT20_SLOT(slot, args)
/* Facts that are not constant expressions. */
static const struct {
  const char* name;
  const char* string;
  const char* expected_string;
  uintptr_t pointer;
  uintptr_t expected_pointer;
} facts[] = {
#include "dat20_facts.inc"
};

int main(void) {
  int wrong = 0;
  for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
    if (facts[i].pointer != facts[i].expected_pointer ||
        (facts[i].expected_string && strcmp(facts[i].string, facts[i].expected_string) != 0)) {
      printf("%s is wrong\n", facts[i].name);
      wrong = 1;
    }
  }
  return wrong;
}
#endif
