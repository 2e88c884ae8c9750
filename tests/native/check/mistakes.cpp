// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// mistakes NAME: makes one mistake for dapple-run --check, or none.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr int kLeaks = 300;
constexpr uint32_t kQkey = 0x1111;  // of connect()
using Clock = std::chrono::steady_clock;
constexpr auto kInVain = std::chrono::milliseconds(700);

bool ends(ibv_cq* cq, ibv_wc_status status) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == status;
}

bool bind_all(End& end, ibv_mw* window) {
  ibv_send_wr request = {}, *bad = nullptr;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  request.bind_mw.bind_info = {end.mr, reinterpret_cast<uintptr_t>(end.buffer), kBufferSize, IBV_ACCESS_REMOTE_WRITE};
  if (ibv_post_send(end.qp, &request, &bad) != 0 || !ends(end.cq, IBV_WC_SUCCESS)) return false;
  window->rkey = request.bind_mw.rkey;
  return true;
}

int post(End& end, ibv_wr_opcode opcode, uint32_t length, const End& remote, uint32_t key) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.buffer), length, end.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_SEND_WITH_INV) {
    request.invalidate_rkey = key;
  } else {
    request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(remote.buffer);
    request.wr.rdma.rkey = key;
  }
  return ibv_post_send(end.qp, &request, &bad);
}

// A peer writes by the key of a window that has ended.
bool use_window(Pair& pair, bool by_peer) {
  ibv_mw* window = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_2);
  if (window == nullptr || !bind_all(pair.b, window)) return false;
  const uint32_t key = window->rkey;
  if (by_peer) {
    if (post_receive(pair.b, 1, 0, 64) != 0 || post(pair.a, IBV_WR_SEND_WITH_INV, 8, pair.b, key) != 0) return false;
    if (!ends(pair.a.cq, IBV_WC_SUCCESS) || !ends(pair.b.cq, IBV_WC_SUCCESS)) return false;
  }
  if (!by_peer && ibv_dealloc_mw(window) != 0) return false;
  if (post(pair.a, IBV_WR_RDMA_WRITE, 8, pair.b, key) != 0 || !ends(pair.a.cq, IBV_WC_REM_ACCESS_ERR)) return false;
  return !by_peer || ibv_dealloc_mw(window) == 0;
}

// The request has several packets, and the region ends in the first one.
bool send_beyond(Pair& pair) {
  ibv_mr* small = ibv_reg_mr(pair.pd, pair.a.buffer, 100, int{IBV_ACCESS_LOCAL_WRITE});
  if (small == nullptr || post_receive(pair.b, 1, 0, kBufferSize) != 0) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.a.buffer), 9000, small->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(pair.a.qp, &request, &bad) != 0 || !ends(pair.a.cq, IBV_WC_LOC_PROT_ERR)) return false;
  return ibv_dereg_mr(small) == 0;
}

// The message finds no receive, and its sender does not repeat it.
bool give_up(Pair& pair) {
  ibv_qp_attr kept = {};
  ibv_qp_init_attr init = {};
  if (ibv_query_qp(pair.a.qp, &kept, IBV_QP_AV, &init) != 0) return false;
  ibv_qp_attr attr = kept;
  attr.qp_state = IBV_QPS_RESET;
  if (ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE) != 0) return false;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    static constexpr int kMasks[] = {
        0,
        IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
            IBV_QP_MIN_RNR_TIMER,
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
    };
    attr = kept;
    attr.qp_state = state;
    attr.rnr_retry = 0;
    if (ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | kMasks[state]) != 0) return false;
  }
  return post_send(pair.a, 1, IBV_WR_SEND, 0, 64) == 0 && ends(pair.a.cq, IBV_WC_RNR_RETRY_EXC_ERR);
}

bool leak(Pair& pair) {
  for (int i = 0; i < kLeaks; i++) {
    if (ibv_reg_mr(pair.pd, pair.a.buffer, 64, int{IBV_ACCESS_LOCAL_WRITE}) == nullptr) return false;
  }
  return true;
}

// A Read, and a Send of its result behind a fence: no mistake.
bool send_result(Pair& pair) {
  for (int i = 0; i < 20; i++) {
    if (post_receive(pair.b, 1, kBufferSize / 2, 4096) != 0) return false;
    memset(pair.b.buffer, i, 4096);
    if (post_send(pair.a, 2, IBV_WR_RDMA_READ, 0, 4096, &pair.b, 0, 0) != 0) return false;
    if (post_send(pair.a, 3, IBV_WR_SEND, 0, 4096, nullptr, 0, IBV_SEND_SIGNALED | IBV_SEND_FENCE) != 0) return false;
    if (!ends(pair.a.cq, IBV_WC_SUCCESS) || !ends(pair.b.cq, IBV_WC_SUCCESS)) return false;
    if (pair.b.buffer[kBufferSize / 2] != i) return false;
  }
  return true;
}

// Posts to a queue pair in error. One such post with its flush is how programs drain a queue pair.
bool post_in_error(Pair& pair, int posts) {
  if (post_receive(pair.a, 1, 0, 64) != 0 || !to_error(pair.a.qp) || !ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR))
    return false;
  for (int i = 0; i < posts; i++) {
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, 64) != 0 || !ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR)) return false;
  }
  return true;
}

// The same after a pipeline: two requests are posted before the program knows of the error.
bool drain_pipeline(Pair& pair) {
  if (!to_error(pair.a.qp)) return false;
  for (int i = 0; i < 2; i++) {
    if (post_send(pair.a, i, IBV_WR_SEND, 0, 64) != 0) return false;
  }
  for (int i = 0; i < 2; i++) {
    if (!ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR)) return false;
  }
  return post_send(pair.a, 2, IBV_WR_SEND, 0, 64) == 0 && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR);
}

// A datagram whose address handle ends before its completion is polled, or after that.
bool send_datagram(bool too_early) {
  PairOptions options;
  options.type = IBV_QPT_UD;
  const std::unique_ptr<Pair> pair(make_pair(options));
  ibv_ah* address = pair == nullptr ? nullptr : make_own_address(*pair);
  if (address == nullptr || post_receive(pair->b, 1, 0, 256) != 0) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 64, pair->a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud.ah = address;
  request.wr.ud.remote_qpn = pair->b.qp->qp_num;
  request.wr.ud.remote_qkey = kQkey;
  if (ibv_post_send(pair->a.qp, &request, &bad) != 0) return false;
  if (too_early && ibv_destroy_ah(address) != 0) return false;
  if (!ends(pair->a.cq, IBV_WC_SUCCESS) || !ends(pair->b.cq, IBV_WC_SUCCESS)) return false;
  return too_early || ibv_destroy_ah(address) == 0;
}

// A queue pair of datagrams takes an RDMA Write, which then fails. Its address and its key have the places of the
// address handle and of the number of a queue pair.
bool write_datagram() {
  PairOptions options;
  options.type = IBV_QPT_UD;
  const std::unique_ptr<Pair> pair(make_pair(options));
  if (pair == nullptr) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 64, pair->a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = 8;
  request.wr.rdma.rkey = pair->a.qp->qp_num ^ 1 << 22;
  return ibv_post_send(pair->a.qp, &request, &bad) == 0 && ends(pair->a.cq, IBV_WC_LOC_QP_OP_ERR);
}

// Polls the queue for a while.
bool poll_in_vain(Pair& pair, unsigned flags) {
  if (post_send(pair.a, 1, IBV_WR_RDMA_WRITE, 0, 64, &pair.b, 0, flags) != 0) return false;
  if (flags == IBV_SEND_SIGNALED && !ends(pair.a.cq, IBV_WC_SUCCESS)) return false;
  ibv_wc completion;
  const Clock::time_point end = Clock::now() + kInVain;
  while (Clock::now() < end) {
    if (ibv_poll_cq(pair.a.cq, 1, &completion) != 0) return false;
  }
  return true;
}

// The peer, which is gone by then, has written a flag. It could be another process.
bool poll_for_errors(Pair& pair) {
  if (post_send(pair.b, 1, IBV_WR_RDMA_WRITE, 0, 64, &pair.a, 0, IBV_SEND_SIGNALED) != 0 ||
      !ends(pair.b.cq, IBV_WC_SUCCESS) || !poll_in_vain(pair, 0) || ibv_destroy_qp(pair.b.qp) != 0)
    return false;
  pair.b.qp = nullptr;
  return true;
}

// A queue pair with two completion queues, which is connected to itself and gets its own message.
struct Self {
  ibv_cq* sent = nullptr;
  ibv_cq* received = nullptr;
  ibv_qp* qp = nullptr;
};

bool make_self(Pair& pair, Self& self) {
  self.sent = ibv_create_cq(pair.context, kDepth, nullptr, nullptr, 0);
  self.received = ibv_create_cq(pair.context, kDepth, nullptr, nullptr, 0);
  ibv_qp_init_attr init = {};
  init.send_cq = self.sent;
  init.recv_cq = self.received;
  init.cap = {kDepth, kDepth, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  self.qp = ibv_create_qp(pair.pd, &init);
  return self.qp != nullptr && connect(self.qp, self.qp->qp_num);
}

bool end_self(const Self& self) {
  return ibv_destroy_qp(self.qp) == 0 && ibv_destroy_cq(self.sent) == 0 && ibv_destroy_cq(self.received) == 0;
}

bool is_empty_for_long(ibv_cq* cq) {
  ibv_wc completion;
  const Clock::time_point end = Clock::now() + kInVain;
  while (Clock::now() < end) {
    if (ibv_poll_cq(cq, 1, &completion) != 0) return false;
  }
  return true;
}

// Waits for a message in the queue of the sends. `knows`: the program has polled the right queue, too.
bool poll_other_queue(Pair& pair, bool knows) {
  Self self;
  if (!make_self(pair, self)) return false;
  ibv_wc completion;
  if (knows && ibv_poll_cq(self.received, 1, &completion) != 0) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.a.buffer), 8, pair.a.mr->lkey};
  ibv_recv_wr receive = {}, *bad_receive = nullptr;
  receive.sg_list = &segment;
  receive.num_sge = 1;
  ibv_send_wr send = {}, *bad_send = nullptr;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  return ibv_post_recv(self.qp, &receive, &bad_receive) == 0 && ibv_post_send(self.qp, &send, &bad_send) == 0 &&
         ends(self.sent, IBV_WC_SUCCESS) && is_empty_for_long(self.sent) && end_self(self);
}

// Waits for a message, which could come. The program does not need the completion of its request.
bool wait_for_message(Pair& pair) {
  Self self;
  if (!make_self(pair, self)) return false;
  ibv_recv_wr receive = {}, *bad_receive = nullptr;
  ibv_send_wr send = {}, *bad_send = nullptr;
  send.opcode = IBV_WR_RDMA_WRITE;
  send.send_flags = IBV_SEND_SIGNALED;
  return ibv_post_recv(self.qp, &receive, &bad_receive) == 0 && ibv_post_send(self.qp, &send, &bad_send) == 0 &&
         is_empty_for_long(self.received) && end_self(self);
}

// Two address handles, one of them without a hop.
bool make_hopless() {
  PairOptions options;
  options.type = IBV_QPT_UD;
  const std::unique_ptr<Pair> pair(make_pair(options));
  if (pair == nullptr) return false;
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = index_of_loopback(pair->context);
  attr.grh.hop_limit = 64;
  if (ibv_query_gid(pair->context, 1, attr.grh.sgid_index, &attr.grh.dgid) != 0) return false;
  for (int i = 0; i < 2; i++, attr.grh.hop_limit = 0) {
    ibv_ah* address = ibv_create_ah(pair->pd, &attr);
    if (address == nullptr || ibv_destroy_ah(address) != 0) return false;
  }
  return true;
}

// A message that comes again and again, until the program gives up. `late`: the receive is only late.
bool send_without_receive(Pair& pair, bool late) {
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, 64) != 0) return false;
  std::this_thread::sleep_for(kInVain);
  if (late)
    return post_receive(pair.b, 1, 0, 64) == 0 && ends(pair.a.cq, IBV_WC_SUCCESS) && ends(pair.b.cq, IBV_WC_SUCCESS);
  return to_error(pair.a.qp) && ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR);
}

// Until the sender gives up, so many of its requests have not been sent.
bool give_up_rest(Pair& pair, int requests) {
  std::this_thread::sleep_for(kInVain);
  if (!to_error(pair.a.qp)) return false;
  while (requests-- > 0) {
    if (!ends(pair.a.cq, IBV_WC_WR_FLUSH_ERR)) return false;
  }
  return true;
}

// The program takes the first message, and posts no other receive for the second one.
bool forget_next_receive(Pair& pair) {
  return post_receive(pair.b, 1, 0, 64) == 0 && post_send(pair.a, 1, IBV_WR_SEND, 0, 64) == 0 &&
         post_send(pair.a, 2, IBV_WR_SEND, 0, 64) == 0 && ends(pair.b.cq, IBV_WC_SUCCESS) &&
         ends(pair.a.cq, IBV_WC_SUCCESS) && give_up_rest(pair, 1);
}

// After a pause of the receiver the peer tries again once in 655 ms.
bool wait_long(Pair& pair) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(pair.b.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) == 0 &&
         post_send(pair.a, 1, IBV_WR_SEND, 0, 64) == 0 && give_up_rest(pair, 1);
}

// A server whose time is over looks at no message, while its client still sends.
bool stop_serving(Pair& pair) {
  constexpr int kSent = 4, kReceives = 2;
  for (int i = 0; i < kReceives; i++) {
    if (post_receive(pair.b, 1, 0, 64) != 0) return false;
  }
  for (int i = 0; i < kSent; i++) {
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, 64) != 0) return false;
  }
  for (int i = 0; i < kReceives; i++) {
    if (!ends(pair.a.cq, IBV_WC_SUCCESS)) return false;
  }
  return give_up_rest(pair, kSent - kReceives);
}

bool use_shared_receives(bool (*use)(Pair&)) {
  PairOptions options;
  options.srq = true;
  const std::unique_ptr<Pair> pair(make_pair(options));
  return pair != nullptr && use(*pair);
}

// A Read has no bytes to send.
bool read_inline(Pair& pair) {
  return post_send(pair.a, 1, IBV_WR_RDMA_READ, 0, 64, &pair.b, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0 &&
         ends(pair.a.cq, IBV_WC_SUCCESS);
}

// A peer writes by the key of a window before its bind.
bool use_unbound_window(Pair& pair) {
  ibv_mw* window = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_2);
  return window != nullptr && post(pair.a, IBV_WR_RDMA_WRITE, 8, pair.b, window->rkey) == 0 &&
         ends(pair.a.cq, IBV_WC_REM_ACCESS_ERR) && ibv_dealloc_mw(window) == 0;
}

// A list of requests that leads back to its second one, in which the device takes none.
template <typename Request, typename Post>
bool post_circle(Post post) {
  Request requests[4] = {}, *bad = nullptr;
  for (int i = 0; i < 4; i++) {
    requests[i].wr_id = 10 + i;
    requests[i].next = &requests[i == 3 ? 1 : i + 1];
  }
  if (post(&requests[0], &bad) != EINVAL || bad != &requests[0]) return false;
  requests[3].next = &requests[3];
  return post(&requests[3], &bad) == EINVAL && bad == &requests[3];
}

// Requests without a list of segments, which the program has not filled in.
bool post_null_lists(Pair& pair) {
  ibv_send_wr send = {}, *bad_send = nullptr;
  send.num_sge = 1;
  ibv_recv_wr receive = {}, *bad_receive = nullptr;
  receive.num_sge = 1;
  return ibv_post_send(pair.a.qp, &send, &bad_send) == EINVAL && bad_send == &send &&
         ibv_post_recv(pair.a.qp, &receive, &bad_receive) == EINVAL && bad_receive == &receive;
}

bool post_shared_circle(Pair& pair) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pair.pd, &init);
  return srq != nullptr &&
         post_circle<ibv_recv_wr>([&](auto* list, auto** bad) { return ibv_post_srq_recv(srq, list, bad); }) &&
         ibv_destroy_srq(srq) == 0;
}

bool post_circle_to_work_queue(Pair& pair) {
  ibv_wq_init_attr init = {};
  init.wq_type = IBV_WQT_RQ;
  init.max_wr = init.max_sge = 1;
  init.pd = pair.pd;
  init.cq = pair.a.cq;
  ibv_wq* wq = ibv_create_wq(pair.context, &init);
  return wq != nullptr &&
         post_circle<ibv_recv_wr>([&](auto* list, auto** bad) { return ibv_post_wq_recv(wq, list, bad); }) &&
         ibv_destroy_wq(wq) == 0;
}

// An extended queue pair that is connected with itself, and its extended completion queue.
struct Extended {
  End end;
  ibv_cq_ex* cq = nullptr;
  ibv_qp_ex* qp = nullptr;
};

bool make_extended(const Pair& pair, Extended& made) {
  ibv_cq_init_attr_ex queue = {};
  queue.cqe = kDepth;
  made.cq = ibv_create_cq_ex(pair.context, &queue);
  if (made.cq == nullptr) return false;
  made.end.cq = ibv_cq_ex_to_cq(made.cq);
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = made.end.cq;
  attr.cap = {kDepth, 1, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pair.pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  made.end.qp = ibv_create_qp_ex(pair.context, &attr);
  made.end.mr = ibv_reg_mr(pair.pd, made.end.buffer, kBufferSize, int{kPeerRights});
  if (made.end.qp == nullptr || made.end.mr == nullptr) return false;
  made.qp = ibv_qp_to_qp_ex(made.end.qp);
  return connect(made.end.qp, made.end.qp->qp_num);
}

bool end(Extended& made) {
  return ibv_destroy_qp(made.end.qp) == 0 && ibv_destroy_cq(made.end.cq) == 0 && ibv_dereg_mr(made.end.mr) == 0;
}

// Writes within the buffer, without ibv_wr_complete().
void begin_write(Extended& made, uint64_t id) {
  ibv_wr_start(made.qp);
  made.qp->wr_id = id;
  made.qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(made.qp, made.end.mr->rkey, reinterpret_cast<uintptr_t>(made.end.buffer + kBufferSize / 2));
  ibv_wr_set_sge(made.qp, made.end.mr->lkey, reinterpret_cast<uintptr_t>(made.end.buffer), 8);
}

// Begins a batch of polls. It ends in a destructor, as in some programs, but only if it has begun.
class Batch {
 public:
  explicit Batch(ibv_cq_ex* cq) : cq_(cq) {
    ibv_poll_cq_attr attr = {};
    has_begun_ = ibv_start_poll(cq, &attr) == 0;
  }
  ~Batch() {
    if (has_begun_) ibv_end_poll(cq_);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  bool has_begun() const { return has_begun_; }

 private:
  ibv_cq_ex* cq_;
  bool has_begun_;
};

// Waits for one completion.
bool polls_one(Extended& made, uint64_t id) {
  const auto end = Clock::now() + std::chrono::duration<double>(kPatience);
  while (Clock::now() < end) {
    const Batch batch(made.cq);
    if (batch.has_begun()) return made.cq->status == IBV_WC_SUCCESS && made.cq->wr_id == id;
  }
  return false;
}

// The program returns early from its loop of polls.
bool poll_twice(Extended& made) {
  begin_write(made, 1);
  if (ibv_wr_complete(made.qp) != 0) return false;
  ibv_poll_cq_attr attr = {};
  const auto end = Clock::now() + std::chrono::duration<double>(kPatience);
  while (ibv_start_poll(made.cq, &attr) != 0) {
    if (Clock::now() > end) return false;
  }
  if (ibv_start_poll(made.cq, &attr) != EBUSY) return false;
  ibv_end_poll(made.cq);
  return true;
}

// ENOENT begins nothing.
bool end_in_vain(Extended& made) {
  ibv_poll_cq_attr attr = {};
  if (ibv_start_poll(made.cq, &attr) != ENOENT) return false;
  ibv_end_poll(made.cq);
  begin_write(made, 1);
  return ibv_wr_complete(made.qp) == 0 && polls_one(made, 1);
}

// The first request is given up, without ibv_wr_abort().
bool start_twice(Extended& made) {
  begin_write(made, 1);
  begin_write(made, 2);
  return ibv_wr_complete(made.qp) == 0 && polls_one(made, 2);
}

bool complete_in_vain(Extended& made) {
  if (ibv_wr_complete(made.qp) != EINVAL) return false;
  begin_write(made, 1);
  return ibv_wr_complete(made.qp) == 0 && polls_one(made, 1);
}

bool abort_in_vain(Extended& made) {
  ibv_wr_abort(made.qp);
  begin_write(made, 1);
  return ibv_wr_complete(made.qp) == 0 && polls_one(made, 1);
}

// Threads that share both queues, and give up each other request.
bool share_batches(Extended& made) {
  constexpr int kThreads = 3, kRounds = 200;
  std::atomic<int> polled{0};
  std::atomic<bool> good{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; round++) {
        begin_write(made, 1);
        ibv_wr_abort(made.qp);
        begin_write(made, 1);
        if (ibv_wr_complete(made.qp) != 0 || !polls_one(made, 1)) {
          good = false;
          return;
        }
        polled++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return good && polled == kThreads * kRounds;
}

bool use_batches(const Pair& pair, bool (*use)(Extended&)) {
  const auto made = std::make_unique<Extended>();
  return make_extended(pair, *made) && use(*made) && end(*made);
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  PairOptions options;
  options.windows = true;
  std::unique_ptr<Pair> pair(make_pair(options));
  if (pair == nullptr || count != 2) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  const char* name = words[1];
  bool good = false;
  if (strcmp(name, "deallocated") == 0) good = use_window(*pair, false);
  if (strcmp(name, "invalidated") == 0) good = use_window(*pair, true);
  if (strcmp(name, "unbound") == 0) good = use_unbound_window(*pair);
  if (strcmp(name, "inline-read") == 0) good = read_inline(*pair);
  if (strcmp(name, "beyond") == 0) good = send_beyond(*pair);
  if (strcmp(name, "gives-up") == 0) good = give_up(*pair);
  if (strcmp(name, "fence") == 0) good = send_result(*pair);
  if (strcmp(name, "post-in-error") == 0) good = post_in_error(*pair, 3);
  if (strcmp(name, "drain") == 0) good = post_in_error(*pair, 1);
  if (strcmp(name, "drain-pipeline") == 0) good = drain_pipeline(*pair);
  if (strcmp(name, "early-ah") == 0) good = send_datagram(true);
  if (strcmp(name, "ah") == 0) good = send_datagram(false);
  if (strcmp(name, "write-datagram") == 0) good = write_datagram();
  if (strcmp(name, "unsignaled") == 0) good = poll_in_vain(*pair, 0);
  if (strcmp(name, "told-by-write") == 0) good = poll_for_errors(*pair);
  if (strcmp(name, "signaled") == 0) good = poll_in_vain(*pair, IBV_SEND_SIGNALED);
  if (strcmp(name, "other-queue") == 0) good = poll_other_queue(*pair, false);
  if (strcmp(name, "both-queues") == 0) good = poll_other_queue(*pair, true);
  if (strcmp(name, "idle-queue") == 0) good = wait_for_message(*pair);
  if (strcmp(name, "hopless") == 0) good = make_hopless();
  if (strcmp(name, "no-receive") == 0) good = send_without_receive(*pair, false);
  if (strcmp(name, "late-receive") == 0) good = send_without_receive(*pair, true);
  if (strcmp(name, "no-next-receive") == 0) good = forget_next_receive(*pair);
  if (strcmp(name, "long-wait") == 0) good = wait_long(*pair);
  if (strcmp(name, "stopped-server") == 0) good = stop_serving(*pair);
  if (strcmp(name, "no-shared-receive") == 0)
    good = use_shared_receives([](Pair& shared) { return send_without_receive(shared, false); });
  if (strcmp(name, "late-shared-receive") == 0)
    good = use_shared_receives([](Pair& shared) { return send_without_receive(shared, true); });
  if (strcmp(name, "no-next-shared-receive") == 0) good = use_shared_receives(forget_next_receive);
  if (strcmp(name, "stopped-shared-server") == 0) good = use_shared_receives(stop_serving);
  if (strcmp(name, "null-list") == 0) good = post_null_lists(*pair);
  if (strcmp(name, "circle-send") == 0)
    good = post_circle<ibv_send_wr>([&](auto* list, auto** bad) { return ibv_post_send(pair->a.qp, list, bad); });
  if (strcmp(name, "circle-receive") == 0)
    good = post_circle<ibv_recv_wr>([&](auto* list, auto** bad) { return ibv_post_recv(pair->a.qp, list, bad); });
  if (strcmp(name, "circle-shared") == 0) good = post_shared_circle(*pair);
  if (strcmp(name, "circle-work-queue") == 0) good = post_circle_to_work_queue(*pair);
  if (strcmp(name, "polls-twice") == 0) good = use_batches(*pair, poll_twice);
  if (strcmp(name, "ends-in-vain") == 0) good = use_batches(*pair, end_in_vain);
  if (strcmp(name, "starts-twice") == 0) good = use_batches(*pair, start_twice);
  if (strcmp(name, "completes-in-vain") == 0) good = use_batches(*pair, complete_in_vain);
  if (strcmp(name, "aborts-in-vain") == 0) good = use_batches(*pair, abort_in_vain);
  if (strcmp(name, "batches") == 0) good = use_batches(*pair, share_batches);
  if (strcmp(name, "leaks") == 0) {
    good = leak(*pair);
    // The regions still use the domain.
    (void)pair.release();
  }
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}
