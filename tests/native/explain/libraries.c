/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * explain-libraries CASE: makes one call of uDAPL or of librpma that fails, and exits with 0 if it has failed as
 * expected. "right" makes no mistake. */
#include <dat2/udat.h>
#include <infiniband/dappledv.h>
#include <librpma.h>
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
  open_ia();
  MUST(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY);
  if (IS("state"))
    MUST(DAT_GET_TYPE(dat_ep_post_send(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG)) == DAT_INVALID_STATE);
  if (IS("argument"))
    MUST(DAT_GET_TYPE(dat_evd_create(ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made)) == DAT_INVALID_PARAMETER);
  if (IS("in-use")) MUST(DAT_GET_TYPE(dat_pz_free(pz)) == DAT_INVALID_STATE);
  if (IS("freed")) {
    MUST(dat_pz_create(ia, &freed) == DAT_SUCCESS && dat_pz_free(freed) == DAT_SUCCESS);
    MUST(DAT_GET_TYPE(dat_pz_free(freed)) == DAT_INVALID_HANDLE);
  }
  if (IS("verb")) {
    MUST(dappledv_refusal(NULL) == NULL);
    MUST(register_unmapped() != DAT_SUCCESS);
    unsigned count = 0;
    const char* reason = dappledv_refusal(&count);
    MUST(reason != NULL && strncmp(reason, "ibv_reg_mr", 10) == 0 && count >= 1);
  }
  close_ia();
}

static void use_librpma(void) {
  struct ibv_context* context = NULL;
  struct rpma_peer* peer = NULL;
  struct rpma_mr_local* mr = NULL;
  MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR) == 0);
  MUST(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context) == 0);
  MUST(rpma_peer_new(context, &peer) == 0);
  MUST(rpma_mr_reg(peer, unmapped_bytes(), kBytes, RPMA_MR_USAGE_READ_DST, &mr) == RPMA_E_PROVIDER);
  MUST(rpma_peer_delete(&peer) == 0);
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  mistake = argv[1];
  if (IS("rpma")) {
    use_librpma();
  } else {
    use_udapl();
  }
  return 0;
}
