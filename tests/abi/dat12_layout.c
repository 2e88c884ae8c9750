/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The DAT 1.2 headers against the facts of the ABI: every size, offset, prototype, table slot and constant; those that
 * 2.0 changed come first. The compiler checks all of it.
 */
#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if !defined(__LP64__)
int main(void) {
  puts("SKIP: the recorded facts are those of LP64");
  return 77;
}
#else

#define SAME_FUNCTION(what, args) __builtin_types_compatible_p(__typeof__(what), DAT_RETURN args)
#define MEMBER_OF(type, member) (((type*)0)->member)

#define DAT12_CONSTANT(name, value) _Static_assert((long long)(name) == (value), #name);
#define DAT12_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type);
#define DAT12_MEMBER(type, member, offset, size)                     \
  _Static_assert(offsetof(type, member) == (offset), #type #member); \
  _Static_assert(sizeof(MEMBER_OF(type, member)) == (size), #type #member);
#define DAT12_FUNCTION(name, args) _Static_assert(SAME_FUNCTION(name, args), #name);
#define DAT12_SLOT(slot, args) _Static_assert(SAME_FUNCTION(*MEMBER_OF(DAT_PROVIDER, slot), args), #slot);
#include "dat12_facts.inc"

int main(void) {
  return 0;
}
#endif
