/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "session.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { kAsyncQueue = 8, kMaxListedProviders = 128, kPage = 4096 };

static int machine_has_rdma_device(void) {
  /* dapple-run names its driver there. */
  if (getenv("RDMAV_DRIVERS")) return 1;
  DIR* devices = opendir("/sys/class/infiniband");
  int found = 0;
  if (devices) {
    for (struct dirent* entry; !found && (entry = readdir(devices));) {
      found = entry->d_name[0] != '.';
    }
    closedir(devices);
  }
  return found;
}

static DAT_RETURN try_open(struct session* session, const char* ia_name) {
  session->async_evd = DAT_HANDLE_NULL; /* none: dat_ia_open creates it */
  session->ia_name = ia_name;
  return dat_ia_open((DAT_NAME_PTR)ia_name, kAsyncQueue, &session->async_evd, &session->ia);
}

static _Noreturn void fail_to_open(const char* ia_name, DAT_RETURN result) {
  if (!machine_has_rdma_device()) {
    fail("this machine has no RDMA device; 'dapple-run COMMAND' runs a command with a software device");
  }
  if (DAT_GET_TYPE(result) == DAT_PROVIDER_NOT_FOUND) {
    fail("no provider for %s (%s); add it to /etc/dat.conf or to the file in DAT_OVERRIDE, or run scripts/demo",
         ia_name, dat_name(result));
  }
  fail("cannot open %s: %s; see that its dat.conf line names a network device with an RDMA device on it (rdma link)",
       ia_name, dat_name(result));
}

static void open_first_registered(struct session* session) {
  static DAT_PROVIDER_INFO infos[kMaxListedProviders];
  DAT_PROVIDER_INFO* list[kMaxListedProviders];
  DAT_COUNT listed = 0;
  DAT_RETURN result = DAT_PROVIDER_NOT_FOUND;
  for (int i = 0; i < kMaxListedProviders; i++) {
    list[i] = &infos[i];
  }
  must(dat_registry_list_providers(kMaxListedProviders, &listed, list), "dat_registry_list_providers",
       "is dat.conf readable?");
  for (DAT_COUNT i = 0; i < listed; i++) {
    if (infos[i].dapl_version_major != DAT_VERSION_MAJOR || infos[i].is_thread_safe) {
      continue;
    }
    result = try_open(session, infos[i].ia_name);
    if (result == DAT_SUCCESS) {
      return;
    }
  }
  fail_to_open(listed == 1 ? infos[0].ia_name : "any registered name", result);
}

static void create_evd(struct session* session, DAT_COUNT length, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd) {
  must(dat_evd_create(session->ia, length, DAT_HANDLE_NULL, flags, evd), "dat_evd_create",
       "the device has no completion queue left");
}

static void create_ep(struct session* session) {
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = session->ia_attr.max_message_size;
  attr.max_rdma_size = session->ia_attr.max_rdma_size;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.max_recv_dtos = kMaxReceives;
  attr.max_request_dtos = kMaxRequests;
  attr.max_recv_iov = 1;
  attr.max_request_iov = 1;
  attr.max_rdma_read_in = 1;
  attr.max_rdma_read_out = 1;
  attr.max_rdma_read_iov = 1;
  attr.max_rdma_write_iov = 1;
  must(dat_ep_create(session->ia, session->pz, session->receive_evd, session->request_evd, session->connection_evd,
                     &attr, &session->ep),
       "dat_ep_create", "the device has no queue pair left");
}

void session_open(struct session* session, const char* ia_name, unsigned timeout_s) {
  memset(session, 0, sizeof *session);
  session->timeout_s = timeout_s;
  if (ia_name) {
    DAT_RETURN result = try_open(session, ia_name);
    if (result != DAT_SUCCESS) {
      fail_to_open(ia_name, result);
    }
  } else {
    open_first_registered(session);
  }
  must(dat_ia_query(session->ia, &session->async_evd, DAT_IA_FIELD_ALL, &session->ia_attr, DAT_PROVIDER_FIELD_ALL,
                    &session->provider_attr),
       "dat_ia_query", "the provider does not answer");
  must(dat_pz_create(session->ia, &session->pz), "dat_pz_create", "the device has no protection domain left");
  create_evd(session, kMaxRequests, DAT_EVD_DTO_FLAG, &session->request_evd);
  create_evd(session, kMaxReceives, DAT_EVD_DTO_FLAG, &session->receive_evd);
  create_evd(session, 4, DAT_EVD_CONNECTION_FLAG, &session->connection_evd);
  create_ep(session);
}

void session_free_endpoint(struct session* session) {
  must(dat_ep_free(session->ep), "dat_ep_free", "the endpoint should have been disconnected");
}

void session_close(struct session* session) {
  const char* advice = "the provider miscounted its objects";
  must(dat_evd_free(session->connection_evd), "dat_evd_free", advice);
  must(dat_evd_free(session->receive_evd), "dat_evd_free", advice);
  must(dat_evd_free(session->request_evd), "dat_evd_free", advice);
  must(dat_pz_free(session->pz), "dat_pz_free", advice);
  must(dat_ia_close(session->ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close", advice);
}

void region_create(struct session* session, struct region* region, size_t length, DAT_MEM_PRIV_FLAGS privileges) {
  DAT_REGION_DESCRIPTION where;
  DAT_VLEN registered_length = 0;
  DAT_VADDR registered_address = 0;
  memset(region, 0, sizeof *region);
  region->length = (length + kPage - 1) / kPage * kPage;
  region->memory = aligned_alloc(kPage, region->length);
  if (!region->memory) {
    fail("no memory for a buffer of %zu bytes; choose a smaller --max-size", region->length);
  }
  memset(region->memory, 0, region->length);
  memset(&where, 0, sizeof where);
  where.for_va = region->memory;
  must(LMR_CREATE(session->ia, DAT_MEM_TYPE_VIRTUAL, where, region->length, session->pz, privileges, &region->lmr,
                  &region->lmr_context, &region->rmr_context, &registered_length, &registered_address),
       "dat_lmr_create", "raise the limit of locked memory (ulimit -l) or choose a smaller --max-size");
}

void region_free(struct region* region) {
  must(dat_lmr_free(region->lmr), "dat_lmr_free", "the region is still in use");
  free(region->memory);
  region->memory = NULL;
}

DAT_LMR_TRIPLET region_segment(const struct region* region, size_t offset, size_t length) {
  DAT_LMR_TRIPLET segment;
  segment.virtual_address = (DAT_VADDR)(size_t)(region->memory + offset);
  segment.segment_length = (segment_length)length;
  segment.lmr_context = region->lmr_context;
  return segment;
}
