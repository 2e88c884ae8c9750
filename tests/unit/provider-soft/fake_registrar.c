/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * A fake libibverbs with the functions that a plug-in needs: the private functions of the interface FAKE_PRIVATE and
 * the public names of the release FAKE_LEVEL, with contexts of FAKE_CONTEXT_SIZE bytes. A map gives the names their
 * versions.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

#define SHOWN __attribute__((visibility("default")))
#define JOIN(a, b) JOIN_EXPANDED(a, b)
#define JOIN_EXPANDED(a, b) a##b

SHOWN const void* ibv_registered;
SHOWN size_t ibv_allocated;
SHOWN int ibv_uninited;

/* Every libibverbs has it. */
SHOWN void fake_query_device(void) __asm__("ibv_query_device");
void fake_query_device(void) {}

SHOWN void verbs_set_ops(void* context, const void* operations);
void verbs_set_ops(void* context, const void* operations) {
  (void)context;
  (void)operations;
}

SHOWN void JOIN(verbs_register_driver_, FAKE_PRIVATE)(const void* operations);
void JOIN(verbs_register_driver_, FAKE_PRIVATE)(const void* operations) {
  ibv_registered = operations;
}

SHOWN void* _verbs_init_and_alloc_context(struct ibv_device* device, int cmd_fd, size_t size, size_t offset,
                                          uint32_t driver);
void* _verbs_init_and_alloc_context(struct ibv_device* device, int cmd_fd, size_t size, size_t offset,
                                    uint32_t driver) {
  unsigned char* allocated = calloc(1, size);
  (void)driver;
  if (allocated == NULL) return NULL;
  /* The public part lies at the end of any release's context. */
  struct ibv_context* context = (struct ibv_context*)(void*)(allocated + offset + FAKE_CONTEXT_SIZE) - 1;
  struct verbs_context* extended = (struct verbs_context*)(void*)(context + 1) - 1;
  ibv_allocated = size - offset;
  context->device = device;
  context->cmd_fd = cmd_fd;
  context->async_fd = -1;
  context->abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended->sz = FAKE_CONTEXT_SIZE;
  return allocated;
}

SHOWN void verbs_uninit_context(void* context);
void verbs_uninit_context(void* context) {
  (void)context;
  ibv_uninited++;
}

/* The public header declares some of these with other types. */
#define NAMED(name)                                  \
  SHOWN void JOIN(fake_, name)(void) __asm__(#name); \
  void JOIN(fake_, name)(void) {}

#if FAKE_LEVEL >= 36
NAMED(ibv_query_qp_data_in_order)
#endif
#if FAKE_LEVEL >= 62
NAMED(ibv_query_port_speed)
#endif
#if FAKE_LEVEL >= 64
NAMED(ibv_alloc_buf)
#endif
#if FAKE_LEVEL >= 65
NAMED(ibv_create_comp_cntr)
#endif
