/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * explain-libraries CASE: makes one call of uDAPL or of librpma that fails, and exits with 0 if it has failed as
 * expected. "right" makes no mistake. */
#include <dat2/udat.h>
#include <errno.h>
#include <infiniband/dappledv.h>
#include <librpma.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/native/explain/mistake.h"

enum { kBytes = 8192 };

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd;
static DAT_EP_HANDLE ep;

static void open_ia(void) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  MUST(dat_ia_open("ofa-v2-lo", 8, &async, &ia) == DAT_SUCCESS);
  MUST(dat_pz_create(ia, &pz) == DAT_SUCCESS);
  MUST(dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd) == DAT_SUCCESS);
  MUST(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep) == DAT_SUCCESS);
}

static void close_ia(void) {
  MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
}

static void* unmapped_bytes(void) {
  void* bytes = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(bytes != MAP_FAILED && munmap(bytes, kBytes) == 0);
  return bytes;
}

static DAT_RETURN register_unmapped(void) {
  DAT_REGION_DESCRIPTION region = {.for_va = unmapped_bytes()};
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  DAT_RMR_CONTEXT remote = 0;
  DAT_VLEN size = 0;
  DAT_VADDR address = 0;
  return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, kBytes, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr,
                        &context, &remote, &size, &address);
}

static void use_udapl(void) {
  DAT_DTO_COOKIE cookie = {.as_64 = 1};
  DAT_PZ_HANDLE freed = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
  DAT_EVENT event;
  if (IS("open-null")) {
    MUST(DAT_GET_TYPE(dat_ia_open("ofa-v2-lo", 8, NULL, &ia)) == DAT_INVALID_PARAMETER);
    return;
  }
  if (IS("open")) {
    MUST(DAT_GET_TYPE(dat_ia_open("ofa-v2-lo", 1 << 30, &made, &ia)) == DAT_INSUFFICIENT_RESOURCES);
    return;
  }
  open_ia();
  MUST(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY);
  if (IS("state"))
    MUST(DAT_GET_TYPE(dat_ep_post_send(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG)) == DAT_INVALID_STATE);
  if (IS("argument"))
    MUST(DAT_GET_TYPE(dat_evd_create(ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made)) == DAT_INVALID_PARAMETER);
  if (IS("null"))
    MUST(DAT_GET_TYPE(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL)) == DAT_INVALID_PARAMETER);
  if (IS("flags")) MUST(DAT_GET_TYPE(dat_ep_disconnect(ep, (DAT_CLOSE_FLAGS)9)) == DAT_INVALID_PARAMETER);
  if (IS("threshold")) {
    DAT_COUNT more = 0;
    MUST(DAT_GET_TYPE(dat_evd_wait(evd, 0, 100000, &event, &more)) == DAT_INVALID_PARAMETER);
  }
  if (IS("timeout")) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    MUST(DAT_GET_TYPE(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 7, 0, 0, NULL, DAT_QOS_BEST_EFFORT,
                                     DAT_CONNECT_DEFAULT_FLAG)) == DAT_INVALID_PARAMETER);
  }
  if (IS("member")) {
    DAT_SRQ_ATTR attr = {.max_recv_dtos = -2, .max_recv_iov = 1};
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    MUST(DAT_GET_TYPE(dat_srq_create(ia, pz, &attr, &srq)) == DAT_INVALID_PARAMETER);
  }
  if (IS("limit")) {
    MUST(DAT_GET_TYPE(dat_evd_create(ia, 1 << 30, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made)) ==
         DAT_INSUFFICIENT_RESOURCES);
  }
  if (IS("in-use")) MUST(DAT_GET_TYPE(dat_pz_free(pz)) == DAT_INVALID_STATE);
  if (IS("freed")) {
    MUST(dat_pz_create(ia, &freed) == DAT_SUCCESS && dat_pz_free(freed) == DAT_SUCCESS);
    MUST(DAT_GET_TYPE(dat_pz_free(freed)) == DAT_INVALID_HANDLE);
  }
  if (IS("null-handle")) {
    MUST(DAT_GET_TYPE(dat_ep_post_send(DAT_HANDLE_NULL, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG)) ==
         DAT_INVALID_HANDLE);
  }
  if (IS("closed-ia")) {
    close_ia();
    MUST(DAT_GET_TYPE(dat_pz_create(ia, &freed)) == DAT_INVALID_HANDLE);
    return;
  }
  if (IS("other-kind")) MUST(DAT_GET_TYPE(dat_ep_free((DAT_EP_HANDLE)pz)) == DAT_INVALID_HANDLE);
  if (IS("verb")) {
    MUST(dappledv_refusal(NULL) == NULL);
    MUST(register_unmapped() != DAT_SUCCESS);
    unsigned count = 0;
    const char* reason = dappledv_refusal(&count);
    MUST(reason != NULL && strncmp(reason, "ibv_reg_mr", 10) == 0 && count >= 1);
  }
  close_ia();
}

/* The functions of libdapple. */
static void use_libdapple(void) {
  struct dappledv_device_attr device = {.coherence = DAPPLEDV_COHERENCE_COHERENT};
  struct dappledv_region_attr region;
  struct dappledv_range_attr range;
  /* This loads the plug-in. */
  ibv_free_device_list(ibv_get_device_list(NULL));
  MUST(dappledv_init_region(&device, &region) == 0);
  if (IS("dappledv-null")) MUST(dappledv_init_region(NULL, &region) == EINVAL);
  if (IS("dappledv-coherence")) MUST(dappledv_override_region(&region, (enum dappledv_coherence)77) == EINVAL);
  if (IS("dappledv-sync")) MUST(dappledv_sync_for_cpu(NULL, NULL, 0) == EINVAL);
  if (IS("dappledv-range")) MUST(dappledv_query_range(unmapped_bytes(), 1, &range) == EFAULT);
  if (IS("dappledv-query")) MUST(dappledv_query_device(NULL, &device) == EINVAL);
  MUST(dappledv_sync_for_cpu(&region, NULL, 0) == EOPNOTSUPP || region.sync_supported);
}

static struct rpma_peer* peer;
static struct rpma_mr_local* mr;
static char memory[kBytes];

// The mistakes of a connected program. The region is not for flushes.
static void use_connection(struct rpma_conn* conn) {
  struct rpma_mr_remote* remote = NULL;
  struct rpma_cq* cq = NULL;
  char descriptor[64];
  size_t size = 0;
  MUST(rpma_mr_reg(peer, memory, kBytes, RPMA_MR_USAGE_WRITE_DST, &mr) == 0);
  MUST(rpma_mr_get_descriptor_size(mr, &size) == 0 && size <= sizeof descriptor);
  MUST(rpma_mr_get_descriptor(mr, descriptor) == 0);
  MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote) == 0);
  if (IS("rpma-flags")) MUST(rpma_send(conn, mr, 0, 8, 0, NULL) == RPMA_E_INVAL);
  if (IS("rpma-channel")) MUST(rpma_conn_wait(conn, 0, &cq, NULL) == RPMA_E_NOT_SHARED_CHNL);
  if (IS("rpma-cq")) {
    MUST(rpma_conn_get_rcq(conn, &cq) == 0);
    MUST(rpma_cq_wait(cq) == RPMA_E_INVAL);
  }
  if (IS("rpma-flush"))
    MUST(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL) == RPMA_E_NOSUPP);
  MUST(rpma_mr_remote_delete(&remote) == 0 && rpma_mr_dereg(&mr) == 0);
}

// Writes to persistent memory. A program that takes the completion for the end of it makes a mistake.
static void write_persistent(struct rpma_conn* conn) {
  struct rpma_mr_remote* remote = NULL;
  struct rpma_cq* cq = NULL;
  struct ibv_wc wc;
  char descriptor[64];
  size_t size = 0;
  MUST(rpma_mr_reg(peer, memory, kBytes,
                   RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                       RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
                   &mr) == 0);
  MUST(rpma_mr_get_descriptor_size(mr, &size) == 0 && size <= sizeof descriptor);
  MUST(rpma_mr_get_descriptor(mr, descriptor) == 0);
  MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote) == 0);
  MUST(rpma_conn_get_cq(conn, &cq) == 0);
  MUST(rpma_write(conn, remote, kBytes / 2, mr, 0, 1024, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
  MUST(rpma_cq_wait(cq) == 0 && rpma_cq_get_wc(cq, 1, &wc, NULL) == 0 && wc.status == IBV_WC_SUCCESS);
  if (IS("rpma-persistent")) {
    MUST(rpma_flush(conn, remote, kBytes / 2, 1024, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
    MUST(rpma_cq_wait(cq) == 0 && rpma_cq_get_wc(cq, 1, &wc, NULL) == 0 && wc.status == IBV_WC_SUCCESS);
  }
  MUST(rpma_mr_remote_delete(&remote) == 0 && rpma_mr_dereg(&mr) == 0);
}

static void connect_librpma(void) {
  struct rpma_ep* endpoint = NULL;
  struct rpma_conn_req* request = NULL;
  struct rpma_conn *client = NULL, *server = NULL;
  enum rpma_conn_event event;
  MUST(rpma_ep_listen(peer, "127.0.0.1", "7478", &endpoint) == 0);
  MUST(rpma_conn_req_new(peer, "127.0.0.1", "7478", NULL, &request) == 0);
  MUST(rpma_conn_req_connect(&request, NULL, &client) == 0);
  MUST(rpma_ep_next_conn_req(endpoint, NULL, &request) == 0);
  MUST(rpma_conn_req_connect(&request, NULL, &server) == 0);
  MUST(rpma_conn_next_event(client, &event) == 0 && event == RPMA_CONN_ESTABLISHED);
  MUST(rpma_conn_next_event(server, &event) == 0 && event == RPMA_CONN_ESTABLISHED);
  if (IS("rpma-persistent") || IS("rpma-unflushed")) {
    write_persistent(client);
  } else {
    use_connection(client);
  }
  MUST(rpma_conn_disconnect(client) == 0);
  MUST(rpma_conn_next_event(server, &event) == 0 && event == RPMA_CONN_CLOSED);
  MUST(rpma_conn_delete(&client) == 0 && rpma_conn_delete(&server) == 0 && rpma_ep_shutdown(&endpoint) == 0);
}

static void use_librpma(void) {
  struct ibv_context* context = NULL;
  MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR) == 0);
  MUST(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context) == 0);
  MUST(rpma_peer_new(context, &peer) == 0);
  if (IS("rpma")) {
    MUST(rpma_mr_reg(peer, unmapped_bytes(), kBytes, RPMA_MR_USAGE_READ_DST, &mr) == RPMA_E_PROVIDER);
  } else if (IS("rpma-busy")) {
    MUST(rpma_mr_reg(peer, memory, kBytes, RPMA_MR_USAGE_READ_DST, &mr) == 0);
  } else {
    connect_librpma();
  }
  MUST(rpma_peer_delete(&peer) == (IS("rpma-busy") ? RPMA_E_PROVIDER : 0));
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  mistake = argv[1];
  if (strncmp(mistake, "rpma", 4) == 0) {
    use_librpma();
  } else if (strncmp(mistake, "dappledv", 8) == 0) {
    use_libdapple();
  } else {
    use_udapl();
  }
  return 0;
}
