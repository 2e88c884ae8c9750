// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// ended NAME: uses a verbs object after its end, for dapple-run --check, or ends many objects and uses none of them.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr int kMany = 20000;

ibv_qp* make_qp(const Pair& pair, ibv_cq* cq) {
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {1, 1, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  return ibv_create_qp(pair.pd, &attr);
}

bool fails(int error) {
  return error == EINVAL;
}

// A queue pair of the extended interface has functions of its own.
bool use_queue_pair(Pair& pair, const char* name) {
  End& end = pair.a;
  if (ibv_destroy_qp(end.qp) != 0) return false;
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  attr.qp_state = IBV_QPS_ERR;
  bool good = false;
  if (strcmp(name, "qp-destroy") == 0) good = fails(ibv_destroy_qp(end.qp));
  if (strcmp(name, "qp-send") == 0) good = fails(post_send(end, 1, IBV_WR_RDMA_WRITE, 0, 64, &pair.b));
  if (strcmp(name, "qp-receive") == 0) good = fails(post_receive(end, 1, 0, 64));
  if (strcmp(name, "qp-modify") == 0) good = fails(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE));
  if (strcmp(name, "qp-query") == 0) good = fails(ibv_query_qp(end.qp, &attr, IBV_QP_STATE, &init));
  if (strcmp(name, "qp-extended") == 0) {
    ibv_qp_ex* extended = ibv_qp_to_qp_ex(end.qp);
    if (extended == nullptr) return false;
    ibv_wr_start(extended);
    ibv_wr_rdma_write(extended, pair.b.mr->rkey, reinterpret_cast<uintptr_t>(pair.b.buffer));
    ibv_wr_set_sge(extended, end.mr->lkey, reinterpret_cast<uintptr_t>(end.buffer), 64);
    good = fails(ibv_wr_complete(extended));
  }
  end.qp = nullptr;
  return good;
}

ibv_wq* make_wq(const Pair& pair, ibv_cq* cq) {
  ibv_wq_init_attr attr = {};
  attr.wq_type = IBV_WQT_RQ;
  attr.max_wr = attr.max_sge = 1;
  attr.pd = pair.pd;
  attr.cq = cq;
  return ibv_create_wq(pair.context, &attr);
}

bool use_queue(Pair& pair, const char* name) {
  ibv_cq* cq = ibv_create_cq(pair.context, 4, nullptr, nullptr, 0);
  if (cq == nullptr || ibv_destroy_cq(cq) != 0) return false;
  ibv_wc completion;
  if (strcmp(name, "cq-poll") == 0) return ibv_poll_cq(cq, 1, &completion) < 0;
  if (strcmp(name, "cq-arm") == 0) return fails(ibv_req_notify_cq(cq, 0));
  if (strcmp(name, "cq-destroy") == 0) return fails(ibv_destroy_cq(cq));
  if (strcmp(name, "cq-create-wq") == 0) return make_wq(pair, cq) == nullptr && errno == EINVAL;
  return strcmp(name, "cq-create-qp") == 0 && make_qp(pair, cq) == nullptr && errno == EINVAL;
}

bool use_domain(Pair& pair, const char* name) {
  ibv_pd* pd = ibv_alloc_pd(pair.context);
  if (pd == nullptr || ibv_dealloc_pd(pd) != 0) return false;
  if (strcmp(name, "pd-register") == 0)
    return ibv_reg_mr(pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE}) == nullptr && errno == EINVAL;
  return strcmp(name, "pd-dealloc") == 0 && fails(ibv_dealloc_pd(pd));
}

bool use_work_queue(Pair& pair, const char* name) {
  ibv_wq* wq = make_wq(pair, pair.a.cq);
  if (wq == nullptr || ibv_destroy_wq(wq) != 0) return false;
  ibv_recv_wr request = {}, *bad = nullptr;
  if (strcmp(name, "wq-receive") == 0) return fails(ibv_post_wq_recv(wq, &request, &bad)) && bad == &request;
  ibv_rwq_ind_table_init_attr attr = {0, &wq, 0};
  return strcmp(name, "wq-table") == 0 && ibv_create_rwq_ind_table(pair.context, &attr) == nullptr && errno == EINVAL;
}

bool deregister_twice(Pair& pair) {
  ibv_mr* mr = ibv_reg_mr(pair.pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE});
  return mr != nullptr && ibv_dereg_mr(mr) == 0 && fails(ibv_dereg_mr(mr));
}

bool use_shared_queue(Pair& pair, const char* name) {
  ibv_srq_init_attr attr = {};
  attr.attr.max_wr = attr.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pair.pd, &attr);
  if (srq == nullptr || ibv_destroy_srq(srq) != 0) return false;
  ibv_recv_wr request = {}, *bad = nullptr;
  if (strcmp(name, "srq-receive") == 0) return fails(ibv_post_srq_recv(srq, &request, &bad)) && bad == &request;
  if (strcmp(name, "srq-destroy") == 0) return fails(ibv_destroy_srq(srq));
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair.a.cq;
  init.srq = srq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  return strcmp(name, "srq-create-qp") == 0 && ibv_create_qp(pair.pd, &init) == nullptr && errno == EINVAL;
}

bool use_address(Pair& pair, const char* name) {
  ibv_ah* ah = make_own_address(pair);
  if (ah == nullptr || ibv_destroy_ah(ah) != 0) return false;
  if (strcmp(name, "ah-destroy") == 0) return fails(ibv_destroy_ah(ah));
  if (strcmp(name, "ah-send") == 0) return fails(post_datagram(pair.a, 64, pair.a.qp, ah, pair.b.qp));
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(pair.a.qp);
  if (strcmp(name, "ah-extended") != 0 || extended == nullptr) return false;
  ibv_wr_start(extended);
  ibv_wr_send(extended);
  ibv_wr_set_ud_addr(extended, ah, pair.b.qp->qp_num, 0);
  ibv_wr_set_sge(extended, pair.a.mr->lkey, reinterpret_cast<uintptr_t>(pair.a.buffer), 64);
  return fails(ibv_wr_complete(extended));
}

// The window, or the region to which it is to be bound, has ended.
bool use_window(Pair& pair, const char* name) {
  ibv_mw* mw = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_2);
  ibv_mr* mr = ibv_reg_mr(pair.pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND});
  if (mw == nullptr || mr == nullptr) return false;
  const bool of_region = strcmp(name, "mw-region") == 0;
  if (of_region ? ibv_dereg_mr(mr) != 0 : ibv_dealloc_mw(mw) != 0) return false;
  const ibv_mw_bind_info info = {mr, reinterpret_cast<uintptr_t>(pair.a.buffer), 64, IBV_ACCESS_REMOTE_WRITE};
  bool good = false;
  if (strcmp(name, "mw-extended") == 0) {
    ibv_qp_ex* extended = ibv_qp_to_qp_ex(pair.a.qp);
    if (extended == nullptr) return false;
    ibv_wr_start(extended);
    ibv_wr_bind_mw(extended, mw, ibv_inc_rkey(mw->rkey), &info);
    good = fails(ibv_wr_complete(extended));
  } else {
    ibv_send_wr request = {}, *bad = nullptr;
    request.opcode = IBV_WR_BIND_MW;
    request.bind_mw = {mw, ibv_inc_rkey(mw->rkey), info};
    good = fails(ibv_post_send(pair.a.qp, &request, &bad)) && bad == &request;
  }
  return good && (of_region ? ibv_dealloc_mw(mw) == 0 : ibv_dereg_mr(mr) == 0);
}

bool use_xrc_domain(Pair& pair) {
  ibv_xrcd_init_attr attr = {};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  ibv_xrcd* xrcd = ibv_open_xrcd(pair.context, &attr);
  return xrcd != nullptr && ibv_close_xrcd(xrcd) == 0 && fails(ibv_close_xrcd(xrcd));
}

bool use_device_memory(Pair& pair, const char* name) {
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(pair.context, &attr);
  if (dm == nullptr || ibv_free_dm(dm) != 0) return false;
  if (strcmp(name, "dm-copy") == 0) return fails(ibv_memcpy_to_dm(dm, 0, pair.a.buffer, 8));
  if (strcmp(name, "dm-free") == 0) return fails(ibv_free_dm(dm));
  return strcmp(name, "dm-register") == 0 && ibv_reg_dm_mr(pair.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED) == nullptr &&
         errno == EINVAL;
}

// The domain is left, so its device is closed before it.
bool use_device(Pair& pair, const char* name) {
  ibv_context* context = open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr || ibv_close_device(context) != 0) return false;
  ibv_port_attr port;
  if (strcmp(name, "device-query") == 0) return fails(ibv_query_port(context, 1, &port));
  if (strcmp(name, "device-alloc") == 0) return ibv_alloc_pd(context) == nullptr && errno == EINVAL;
  if (strcmp(name, "device-close") == 0) return ibv_close_device(context) == 0 && errno == EINVAL;
  return strcmp(name, "device-domain") == 0 &&
         ibv_reg_mr(pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE}) == nullptr && errno == EINVAL;
}

bool open_many() {
  for (int i = 0; i < 200; i++) {
    ibv_context* context = open_loopback();
    if (context == nullptr || ibv_close_device(context) != 0) return false;
  }
  return true;
}

bool end_many(Pair& pair) {
  for (int i = 0; i < kMany; i++) {
    ibv_mr* mr = ibv_reg_mr(pair.pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE});
    if (mr == nullptr || ibv_dereg_mr(mr) != 0) return false;
  }
  for (int i = 0; i < 100; i++) {
    ibv_qp* qp = make_qp(pair, pair.a.cq);
    if (qp == nullptr || ibv_destroy_qp(qp) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  const char* name = count == 2 ? words[1] : "";
  PairOptions options;
  if (strcmp(name, "qp-extended") == 0) options.operations = IBV_QP_EX_WITH_RDMA_WRITE;
  if (strcmp(name, "mw-extended") == 0) options.operations = IBV_QP_EX_WITH_BIND_MW;
  if (strncmp(name, "ah-", 3) == 0) options.type = IBV_QPT_UD;
  if (strcmp(name, "ah-extended") == 0) options.operations = IBV_QP_EX_WITH_SEND;
  const std::unique_ptr<Pair> pair(make_pair(options));
  if (pair == nullptr) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  bool good = false;
  if (strncmp(name, "qp-", 3) == 0) good = use_queue_pair(*pair, name);
  if (strncmp(name, "cq-", 3) == 0) good = use_queue(*pair, name);
  if (strncmp(name, "wq-", 3) == 0) good = use_work_queue(*pair, name);
  if (strncmp(name, "pd-", 3) == 0) good = use_domain(*pair, name);
  if (strncmp(name, "srq-", 4) == 0) good = use_shared_queue(*pair, name);
  if (strncmp(name, "ah-", 3) == 0) good = use_address(*pair, name);
  if (strncmp(name, "mw-", 3) == 0) good = use_window(*pair, name);
  if (strcmp(name, "xrcd-close") == 0) good = use_xrc_domain(*pair);
  if (strncmp(name, "dm-", 3) == 0) good = use_device_memory(*pair, name);
  if (strcmp(name, "mr-deregister") == 0) good = deregister_twice(*pair);
  if (strncmp(name, "device-", 7) == 0) good = use_device(*pair, name);
  if (strcmp(name, "many") == 0) good = end_many(*pair) && open_many();
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}
