// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Errors, events and ends on the software device, between two queue pairs of this process over lo. Runs under
// dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

void write__beyond_the_region_fails_both_ends_with_an_event(void**) {
  assert_true(begin({}));
  assert_int_equal(post_receive(pair->b, 20, 0, 100), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 10, &pair->b, kBufferSize - 9), 0);
  assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 10, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  expect(pair->a.cq, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
  expect(pair->b.cq, 20, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  // Posted after the flush.
  assert_int_equal(post_receive(pair->b, 21, 0, 100), 0);
  expect(pair->b.cq, 21, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  assert_true(becomes_readable(pair->context->async_fd));
  ibv_async_event event = {};
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  assert_ptr_equal(event.element.qp, pair->b.qp);
  ibv_ack_async_event(&event);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(pair->b.qp, &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.qp_state, IBV_QPS_ERR);
}

void destroyed_objects__leave_no_events(void**) {
  PairOptions options;
  options.channel = true;
  assert_true(begin(options));
  assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
  assert_int_equal(post_receive(pair->b, 1, 0, 100), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 10, &pair->b, kBufferSize), 0);
  assert_true(becomes_readable(pair->channel->fd));
  assert_true(becomes_readable(pair->context->async_fd));
  assert_int_equal(ibv_destroy_cq(pair->b.cq), EBUSY);
  assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
  pair->b.qp = nullptr;
  assert_false(readable(pair->context->async_fd, 0));
  assert_true(readable(pair->channel->fd, 0));
  assert_int_equal(ibv_destroy_cq(pair->b.cq), 0);
  pair->b.cq = nullptr;
  assert_false(readable(pair->channel->fd, 0));
}

// Reads asynchronous events until one of this type comes.
bool hears(ibv_context* context, ibv_event_type type) {
  for (;;) {
    ibv_async_event event = {};
    if (!becomes_readable(context->async_fd) || ibv_get_async_event(context, &event) != 0) return false;
    ibv_ack_async_event(&event);
    if (event.event_type == type) return event.element.port_num == 1;
  }
}

void events__netdev_changes__are_told(void**) {
  ibv_context* context = open_loopback();
  ibv_context* second = open_loopback();
  assert_non_null(context);
  assert_non_null(second);
  if (run("ip addr add 10.9.9.9/32 dev lo")) {
    assert_true(hears(context, IBV_EVENT_GID_CHANGE));
    assert_true(hears(second, IBV_EVENT_GID_CHANGE));
    // The same if the program makes a request at that moment.
    for (int i = 0; i < 20; i++) {
      assert_true(run(i % 2 == 0 ? "ip addr del 10.9.9.9/32 dev lo" : "ip addr add 10.9.9.9/32 dev lo"));
      ibv_port_attr port;
      assert_int_equal(ibv_query_port(context, 1, &port), 0);
      assert_true(hears(context, IBV_EVENT_GID_CHANGE));
    }
    assert_true(run("ip addr del 10.9.9.9/32 dev lo && ip link set lo down"));
    assert_true(hears(context, IBV_EVENT_PORT_ERR));
    // A device that has not looked by now would see no change.
    assert_true(hears(second, IBV_EVENT_PORT_ERR));
    assert_true(run("ip link set lo up"));
    assert_true(hears(context, IBV_EVENT_PORT_ACTIVE));
    assert_true(hears(second, IBV_EVENT_PORT_ACTIVE));
  } else {
    print_message("no address can be added: left out\n");
  }
  assert_int_equal(ibv_close_device(second), 0);
  assert_int_equal(ibv_close_device(context), 0);
}

void refusals__have_the_documented_errors(void**) {
  assert_true(begin({}));
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->a.cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_DRIVER;
  assert_null(ibv_create_qp(pair->pd, &init));
  assert_int_equal(errno, EOPNOTSUPP);
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_sge = 33;
  assert_null(ibv_create_qp(pair->pd, &init));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_dealloc_pd(pair->pd), EBUSY);
  assert_null(ibv_reg_mr(pair->pd, reinterpret_cast<void*>(4096), 4096, int{IBV_ACCESS_LOCAL_WRITE}));
  assert_int_equal(errno, EFAULT);
  assert_null(ibv_reg_mr(pair->pd, pair->a.buffer, 10, int{IBV_ACCESS_REMOTE_WRITE}));
  assert_int_equal(errno, EINVAL);
  assert_null(ibv_reg_dmabuf_mr(pair->pd, 0, 4096, 0, 0, 0));
  assert_int_equal(errno, EINVAL);  // no dma-buf
  ibv_xrcd_init_attr xrcd = {};
  assert_null(ibv_open_xrcd(pair->context, &xrcd));
  ibv_ah_attr address = {};
  address.is_global = 1;
  address.port_num = 1;
  address.grh.sgid_index = 31;
  assert_null(ibv_create_ah(pair->pd, &address));
  assert_int_equal(errno, ENODATA);
  address.grh.sgid_index = 64;
  assert_null(ibv_create_ah(pair->pd, &address));
  assert_int_equal(errno, EINVAL);
  // lo lacks the address of its default GID.
  address.grh.sgid_index = 0;
  assert_int_equal(ibv_query_gid(pair->context, 1, 0, &address.grh.dgid), 0);
  assert_null(ibv_create_ah(pair->pd, &address));
  assert_int_equal(errno, ENETUNREACH);
  // A queue pair in RESET takes no receives, and no RC queue pair joins a group.
  ibv_qp* qp = ibv_create_qp(pair->pd, &(init.cap.max_send_sge = 1, init));
  assert_non_null(qp);
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_recv(qp, &receive, &bad), EINVAL);
  assert_ptr_equal(bad, &receive);
  ibv_gid group = {};
  group.raw[0] = 0xFF;
  assert_int_equal(ibv_attach_mcast(qp, &group, 0), EINVAL);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

void vanished_peer__ends_the_retries_whether_somebody_polls_or_not(void**) {
  for (const bool polls : {false, true}) {
    PairOptions options;
    options.channel = !polls;
    assert_true(begin(options));
    if (!polls) assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
    assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
    pair->a.qp = nullptr;
    assert_int_equal(post_send(pair->b, 1, IBV_WR_RDMA_WRITE, 0, 5000, &pair->a), 0);
    assert_int_equal(post_send(pair->b, 2, IBV_WR_RDMA_WRITE, 0, 5000, &pair->a), 0);
    if (!polls) assert_true(becomes_readable(pair->channel->fd));
    expect(pair->b.cq, 1, IBV_WC_RETRY_EXC_ERR, IBV_WC_RDMA_WRITE);
    expect(pair->b.cq, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
    finish(nullptr);
  }
}

struct Traffic {
  pthread_t thread;
  uint32_t rkey;
  uint64_t succeeded;
  uint64_t failed;
};

// Writes until a Write fails, and polls meanwhile.
void* write_until_it_fails(void* argument) {
  auto* traffic = static_cast<Traffic*>(argument);
  ibv_wc completion = {};
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 20000, pair->a.mr->lkey};
  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = traffic->rkey;
  while (traffic->failed == 0) {
    if (ibv_post_send(pair->a.qp, &request, &bad) != 0) break;
    if (!wait_for(pair->a.cq, completion)) break;
    __atomic_fetch_add(completion.status == IBV_WC_SUCCESS ? &traffic->succeeded : &traffic->failed, 1,
                       __ATOMIC_RELEASE);
  }
  return nullptr;
}

void destruction__of_what_a_peer_writes_to(void**) {
  for (int round = 0; round < 10; ++round) {
    assert_true(begin({}));
    Traffic traffic = {};
    traffic.rkey = pair->b.mr->rkey;
    assert_int_equal(pthread_create(&traffic.thread, nullptr, write_until_it_fails, &traffic), 0);
    while (__atomic_load_n(&traffic.succeeded, __ATOMIC_ACQUIRE) < 20) usleep(100);
    if (round % 2 == 0) {
      assert_int_equal(ibv_dereg_mr(pair->b.mr), 0);
      pair->b.mr = nullptr;
      memset(pair->b.buffer, 1, kBufferSize);
    } else {
      assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
      pair->b.qp = nullptr;
    }
    pthread_join(traffic.thread, nullptr);
    assert_int_equal(traffic.failed, 1);
    if (round % 2 == 0) {
      for (size_t i = 0; i < kBufferSize; ++i) assert_int_equal(pair->b.buffer[i], 1);
    }
    finish(nullptr);
  }
}

// Moves a queue pair to RESET; false if that fails.
bool to_reset(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

// The completions of a queue pair's earlier life would be taken for those of its next one.
void reset__drops_the_completions_of_before(void**) {
  assert_true(begin({}));
  for (uint64_t i = 0; i < 4; ++i) assert_int_equal(post_receive(pair->b, i, 0, 4096), 0);
  assert_int_equal(post_send(pair->a, 10, IBV_WR_SEND, 0, 64), 0);
  expect(pair->b.cq, 0, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_true(to_error(pair->b.qp) && to_reset(pair->a.qp) && to_reset(pair->b.qp));
  assert_true(connect(pair->a.qp, pair->b.qp->qp_num) && connect(pair->b.qp, pair->a.qp->qp_num));
  ibv_wc completion;
  assert_int_equal(ibv_poll_cq(pair->a.cq, 1, &completion), 0);
  assert_int_equal(ibv_poll_cq(pair->b.cq, 1, &completion), 0);
  assert_int_equal(post_receive(pair->b, 20, 0, 4096), 0);
  assert_int_equal(post_send(pair->a, 21, IBV_WR_SEND, 0, 64), 0);
  expect(pair->b.cq, 20, IBV_WC_SUCCESS, IBV_WC_RECV);
  expect(pair->a.cq, 21, IBV_WC_SUCCESS, IBV_WC_SEND);
}

// A peer has its message and disconnects. Its acknowledgement arrived earlier, and is in a socket that nobody has read
// yet. Nothing polls the sender's queue in between.
void error__comes_after_what_has_come_before(void**) {
  assert_true(begin({}));
  for (uint64_t i = 0; i < 200; ++i) {
    End& leaves = i % 2 == 0 ? pair->a : pair->b;
    assert_int_equal(post_receive(pair->b, i, 0, 4096), 0);
    for (uint64_t k = 0; k < 3; ++k) {
      assert_int_equal(post_send(pair->a, k, IBV_WR_RDMA_WRITE, 0, 4096, &pair->b, 4096), 0);
    }
    assert_int_equal(post_send(pair->a, 3, IBV_WR_SEND, 0, 4096), 0);
    expect(pair->b.cq, i, IBV_WC_SUCCESS, IBV_WC_RECV);
    assert_true(to_error(leaves.qp));
    for (uint64_t k = 0; k < 4; ++k) expect(pair->a.cq, k, IBV_WC_SUCCESS, k == 3 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
    assert_true(to_reset(pair->a.qp) && to_reset(pair->b.qp));
    assert_true(connect(pair->a.qp, pair->b.qp->qp_num) && connect(pair->b.qp, pair->a.qp->qp_num));
  }
}

// The same for a sender that destroys its queue pair, and looks at its completion queue afterwards.
void destruction__comes_after_what_has_come_before(void**) {
  for (uint64_t i = 0; i < 100; ++i) {
    assert_true(begin({}));
    assert_int_equal(post_receive(pair->b, i, 0, 4096), 0);
    assert_int_equal(post_send(pair->a, 0, IBV_WR_RDMA_WRITE, 0, 4096, &pair->b, 4096), 0);
    assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 4096), 0);
    expect(pair->b.cq, i, IBV_WC_SUCCESS, IBV_WC_RECV);
    assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
    pair->a.qp = nullptr;
    ibv_wc completions[3];
    assert_int_equal(ibv_poll_cq(pair->a.cq, 3, completions), 2);
    for (const uint64_t k : {0, 1}) {
      assert_int_equal(completions[k].wr_id, k);
      assert_int_equal(completions[k].status, IBV_WC_SUCCESS);
    }
    finish(nullptr);
  }
}

// Posts a receive of end b in memory that is unmapped afterwards. Returns the region, which stays registered.
ibv_mr* post_receive_in_unmapped_memory() {
  constexpr size_t kSize = 4096;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(memory != MAP_FAILED);
  ibv_mr* region = ibv_reg_mr(pair->pd, memory, kSize, int{IBV_ACCESS_LOCAL_WRITE});
  assert_non_null(region);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory), kSize, region->lkey};
  ibv_recv_wr receive = {}, *bad = nullptr;
  receive.sg_list = &segment;
  receive.num_sge = 1;
  assert_int_equal(ibv_post_recv(pair->b.qp, &receive, &bad), 0);
  assert_int_equal(munmap(memory, kSize), 0);
  return region;
}

// UCX ends in this order. A NIC goes on with the old pages.
void datagram__to_memory_that_is_unmapped_before_its_queue_pair_is_destroyed(void**) {
  for (const bool destroys_at_once : {false, true}) {
    PairOptions options;
    options.type = IBV_QPT_UD;
    options.channel = true;
    assert_true(begin(options));
    ibv_ah* address = make_own_address(*pair);
    assert_non_null(address);
    assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
    ibv_mr* region = post_receive_in_unmapped_memory();
    assert_int_equal(post_datagram(pair->a, 100, pair->a.qp, address, pair->b.qp), 0);
    if (!destroys_at_once) {
      assert_true(becomes_readable(pair->channel->fd));
      expect(pair->b.cq, 0, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
    pair->b.qp = nullptr;
    assert_int_equal(ibv_dereg_mr(region), 0);
    assert_int_equal(ibv_destroy_ah(address), 0);
    finish(nullptr);
  }
}

void fork__child_is_refused_and_the_parent_goes_on(void**) {
  assert_true(begin({}));
  const pid_t child = fork();
  if (child == 0) {
    ibv_wc completion;
    bool good = ibv_poll_cq(pair->a.cq, 1, &completion) < 0;
    good = good && post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 8, &pair->b) == ENODEV;
    good = good && ibv_alloc_pd(pair->context) == nullptr && errno == ENODEV;
    good = good && ibv_destroy_qp(pair->a.qp) == ENODEV;
    // A device of its own.
    ibv_context* own = open_loopback();
    good = good && own != nullptr && ibv_alloc_pd(own) != nullptr;
    _exit(good ? 0 : 1);
  }
  assert_true(child > 0);
  for (uint64_t i = 0; i < 10; ++i) {
    assert_int_equal(post_send(pair->a, i, IBV_WR_RDMA_WRITE, 0, 5000, &pair->b), 0);
    expect(pair->a.cq, i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(post_send(pair->a, 99, IBV_WR_RDMA_WRITE, 0, 5000, &pair->b), 0);
  expect(pair->a.cq, 99, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

// The attributes of a connection to the queue pair itself.
ibv_qp_attr attributes_for_rtr(const ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = index_of_loopback(qp->context);
  ibv_query_gid(qp->context, 1, attr.ah_attr.grh.sgid_index, &attr.ah_attr.grh.dgid);
  return attr;
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 ? attr.qp_state : IBV_QPS_UNKNOWN;
}

ibv_mtu active_mtu() {
  ibv_port_attr port = {};
  return ibv_query_port(pair->context, 1, &port) == 0 ? port.active_mtu : ibv_mtu{};
}

// Moves end a's queue pair back to INIT.
bool to_init() {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  return to_reset(pair->a.qp) &&
         ibv_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

int give_lo_its_mtu(void** state) {
  run("ip link set lo mtu 65536");
  return finish(state);
}

// Packets that the netdev cannot carry would be lost silently.
void modify__path_mtu_beyond_the_netdevs__is_refused(void**) {
  assert_true(begin({}));
  ibv_qp* qp = pair->a.qp;
  assert_int_equal(active_mtu(), IBV_MTU_4096);
  if (!run("ip link set lo mtu 1500")) skip();
  assert_int_equal(active_mtu(), IBV_MTU_1024);
  assert_true(to_init());
  ibv_qp_attr attr = attributes_for_rtr(qp);
  attr.path_mtu = IBV_MTU_2048;
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRtr), EINVAL);
  assert_int_equal(state_of(qp), IBV_QPS_INIT);
  attr.path_mtu = IBV_MTU_1024;
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRtr), 0);
  assert_int_equal(state_of(qp), IBV_QPS_RTR);
}

void modify__attributes_that_the_device_lacks__are_refused(void**) {
  assert_true(begin({}));
  ibv_qp* qp = pair->a.qp;
  ibv_device_attr device = {};
  assert_int_equal(ibv_query_device(pair->context, &device), 0);
  assert_true(to_reset(qp));
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 2;
  constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  assert_int_equal(ibv_modify_qp(qp, &attr, kToInit), EINVAL);
  attr.port_num = 1;
  attr.pkey_index = 1;
  assert_int_equal(ibv_modify_qp(qp, &attr, kToInit), EINVAL);
  assert_int_equal(state_of(qp), IBV_QPS_RESET);

  assert_true(to_init());
  attr = attributes_for_rtr(qp);
  attr.alt_port_num = 1;
  attr.alt_ah_attr = attr.ah_attr;
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRtr | IBV_QP_ALT_PATH), EINVAL);
  attr.max_dest_rd_atomic = static_cast<uint8_t>(device.max_qp_rd_atom + 1);
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRtr), EINVAL);
  assert_int_equal(state_of(qp), IBV_QPS_INIT);
  attr.max_dest_rd_atomic = static_cast<uint8_t>(device.max_qp_rd_atom);
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRtr), 0);

  attr.qp_state = IBV_QPS_RTS;
  constexpr int kToRts =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  attr.max_rd_atomic = static_cast<uint8_t>(device.max_qp_init_rd_atom + 1);
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRts), EINVAL);
  assert_int_equal(state_of(qp), IBV_QPS_RTR);
  attr.max_rd_atomic = static_cast<uint8_t>(device.max_qp_init_rd_atom);
  assert_int_equal(ibv_modify_qp(qp, &attr, kToRts), 0);
}

}  // namespace

// The program leaves all objects of the device, and may free its memory at once.
void closed_device__is_not_reached_by_peers(void**) {
  static Pair* left = nullptr;  // its objects stay in memory
  assert_true(begin({}));
  left = make_pair({});
  assert_non_null(left);
  End& target = left->a;
  assert_true(to_reset(pair->a.qp) && to_reset(target.qp));
  assert_true(connect(pair->a.qp, target.qp->qp_num) && connect(target.qp, pair->a.qp->qp_num));
  pair->a.buffer[0] = 1;
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 1, &target), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_int_equal(target.buffer[0], 1);

  assert_int_equal(ibv_close_device(left->context), 0);
  pair->a.buffer[0] = 2;
  assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 1, &target), 0);
  expect(pair->a.cq, 2, IBV_WC_RETRY_EXC_ERR, IBV_WC_RDMA_WRITE);
  assert_int_equal(target.buffer[0], 1);
}

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(write__beyond_the_region_fails_both_ends_with_an_event, finish),
      cmocka_unit_test_teardown(destroyed_objects__leave_no_events, finish),
      cmocka_unit_test(events__netdev_changes__are_told),
      cmocka_unit_test_teardown(refusals__have_the_documented_errors, finish),
      cmocka_unit_test_teardown(vanished_peer__ends_the_retries_whether_somebody_polls_or_not, finish),
      cmocka_unit_test_teardown(destruction__of_what_a_peer_writes_to, finish),
      cmocka_unit_test_teardown(error__comes_after_what_has_come_before, finish),
      cmocka_unit_test_teardown(reset__drops_the_completions_of_before, finish),
      cmocka_unit_test_teardown(destruction__comes_after_what_has_come_before, finish),
      cmocka_unit_test_teardown(datagram__to_memory_that_is_unmapped_before_its_queue_pair_is_destroyed, finish),
      cmocka_unit_test_teardown(closed_device__is_not_reached_by_peers, finish),
      cmocka_unit_test_teardown(fork__child_is_refused_and_the_parent_goes_on, finish),
      cmocka_unit_test_teardown(modify__path_mtu_beyond_the_netdevs__is_refused, give_lo_its_mtu),
      cmocka_unit_test_teardown(modify__attributes_that_the_device_lacks__are_refused, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
