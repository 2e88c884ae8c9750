/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dlopened [LIBIBVERBS LIBRDMACM]...: loads libibverbs and librdmacm at run time, as NCCL and others do, and uses the
 * software device through them. Then it closes them and does so again. Without names it loads the system's.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                    \
  do {                                                      \
    if (!(condition)) {                                     \
      printf("FAILED line %d: %s\n", __LINE__, #condition); \
      failures++;                                           \
      return;                                               \
    }                                                       \
  } while (0)

/* Sets a pointer to the function with that name and version. */
#define FIND(library, name, version)                     \
  __typeof__(&name) found_##name;                        \
  do {                                                   \
    void* symbol = dlvsym(library, #name, version);      \
    CHECK(symbol != NULL);                               \
    memcpy(&found_##name, &symbol, sizeof found_##name); \
  } while (0)

static void use_verbs(void* library) {
  FIND(library, ibv_get_device_list, "IBVERBS_1.1");
  FIND(library, ibv_free_device_list, "IBVERBS_1.1");
  FIND(library, ibv_get_device_name, "IBVERBS_1.1");
  FIND(library, ibv_open_device, "IBVERBS_1.1");
  FIND(library, ibv_close_device, "IBVERBS_1.1");
  FIND(library, ibv_query_gid, "IBVERBS_1.1");
  FIND(library, ibv_alloc_pd, "IBVERBS_1.1");
  FIND(library, ibv_dealloc_pd, "IBVERBS_1.1");
  FIND(library, ibv_create_cq, "IBVERBS_1.1");
  FIND(library, ibv_destroy_cq, "IBVERBS_1.1");
  int count = 0;
  struct ibv_device** devices = found_ibv_get_device_list(&count);
  CHECK(devices != NULL && count > 0);
  CHECK(strncmp(found_ibv_get_device_name(devices[0]), "dapple", strlen("dapple")) == 0);
  struct ibv_context* context = found_ibv_open_device(devices[0]);
  CHECK(context != NULL);
  found_ibv_free_device_list(devices);
  union ibv_gid gid;
  CHECK(found_ibv_query_gid(context, 1, 0, &gid) == 0);
  struct ibv_pd* pd = found_ibv_alloc_pd(context);
  CHECK(pd != NULL);
  struct ibv_cq* cq = found_ibv_create_cq(context, 8, NULL, NULL, 0);
  CHECK(cq != NULL);
  struct ibv_wc completion;
  CHECK(ibv_poll_cq(cq, 1, &completion) == 0);
  CHECK(found_ibv_destroy_cq(cq) == 0);
  CHECK(found_ibv_dealloc_pd(pd) == 0);
  CHECK(found_ibv_close_device(context) == 0);
}

static void use_rdma_cm(void* library) {
  FIND(library, rdma_create_event_channel, "RDMACM_1.0");
  FIND(library, rdma_destroy_event_channel, "RDMACM_1.0");
  FIND(library, rdma_create_id, "RDMACM_1.0");
  FIND(library, rdma_destroy_id, "RDMACM_1.0");
  FIND(library, rdma_resolve_addr, "RDMACM_1.0");
  FIND(library, rdma_get_cm_event, "RDMACM_1.0");
  FIND(library, rdma_ack_cm_event, "RDMACM_1.0");
  struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(7174)};
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct rdma_event_channel* channel = found_rdma_create_event_channel();
  CHECK(channel != NULL);
  struct rdma_cm_id* id;
  CHECK(found_rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(found_rdma_resolve_addr(id, NULL, (struct sockaddr*)&self, 2000) == 0);
  struct rdma_cm_event* event;
  CHECK(found_rdma_get_cm_event(channel, &event) == 0);
  CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(id->verbs != NULL);
  CHECK(found_rdma_ack_cm_event(event) == 0);
  CHECK(found_rdma_destroy_id(id) == 0);
  found_rdma_destroy_event_channel(channel);
}

static void load_and_use(const char* name, void (*use)(void* library)) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) printf("%s\n", dlerror());
  CHECK(library != NULL);
  use(library);
  CHECK(dlclose(library) == 0);
}

int main(int argc, char** argv) {
  for (int round = 0; round < 2; round++) {
    if (argc == 1) load_and_use("libibverbs.so.1", use_verbs);
    if (argc == 1) load_and_use("librdmacm.so.1", use_rdma_cm);
    for (int i = 1; i < argc; i++) load_and_use(argv[i], strstr(argv[i], "rdmacm") == NULL ? use_verbs : use_rdma_cm);
  }
  printf("%d failed\n", failures);
  return failures != 0;
}
