// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An XRC domain of several processes: a target has the queue pair, an owner has the shared receive queue, and a sender
// is connected to the queue pair. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <memory>

#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/native/verbs/xrc_domain.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kLong = 30000;

// In memory that all processes share.
struct Shared {
  std::atomic<int> turn{0};
  std::atomic<uint32_t> sender{0};
  std::atomic<uint32_t> target{0};
  std::atomic<uint32_t> number{0};  // of the shared receive queue
  std::atomic<uint32_t> rkey{0};
  std::atomic<uint64_t> address{0};
};
Shared* shared;
int file;  // names the domain; from before the forks

bool wait_for_turn(int turn) {
  return await(kPatience, [turn] { return shared->turn >= turn; });
}
void next_turn(int turn) {
  shared->turn = turn;
}

// A process' objects. They end with the process.
struct Member {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_xrcd* domain = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  alignas(4096) char buffer[kBufferSize] = {};

  bool open() {
    context = open_loopback();
    pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
    if (pd == nullptr) return false;
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, kDepth, nullptr, channel, 0);
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, kPeerRights);
    return cq != nullptr && mr != nullptr;
  }
  bool open(int flags) { return open() && (domain = open_domain(context, file, flags)) != nullptr; }

  bool make_queue() {
    ibv_srq_init_attr_ex attr = {};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.attr = {kDepth, 2, 0};
    attr.pd = pd;
    attr.xrcd = domain;
    attr.cq = cq;
    srq = ibv_create_srq_ex(context, &attr);
    uint32_t number = 0;
    if (srq == nullptr || ibv_get_srq_num(srq, &number) != 0) return false;
    shared->address = reinterpret_cast<uintptr_t>(buffer);
    shared->rkey = mr->rkey;
    shared->number = number;
    return true;
  }
  bool create_target() {
    qp = make_receiver(domain);
    return qp != nullptr;
  }
  bool make_target() {
    if (!create_target()) return false;
    shared->target = qp->qp_num;
    return await(kPatience, [] { return shared->sender != 0; }) && connect(qp, shared->sender);
  }
  // Busy machines stop a process for longer than the timer of connect().
  bool make_sender(uint8_t timeout = 14) {
    ibv_qp_init_attr_ex attr = {};
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.qp_type = IBV_QPT_XRC_SEND;
    attr.pd = pd;
    attr.send_cq = cq;
    attr.cap = {kDepth, 0, 1, 0, 64};
    qp = ibv_create_qp_ex(context, &attr);
    if (qp == nullptr) return false;
    shared->sender = qp->qp_num;
    return await(kPatience, [] { return shared->target != 0; }) && connect(qp, shared->target, timeout);
  }
  ibv_qp* open_target() {
    ibv_qp_open_attr attr = {};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = shared->target;
    attr.xrcd = domain;
    attr.qp_type = IBV_QPT_XRC_RECV;
    errno = 0;
    return ibv_open_qp(context, &attr);
  }

  bool receive(uint64_t id, size_t offset, uint32_t length) {
    // Two pieces, so that packets cross their border.
    ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(buffer) + offset, length / 3, mr->lkey},
                         {reinterpret_cast<uintptr_t>(buffer) + offset + length / 3, length - length / 3, mr->lkey}};
    ibv_recv_wr request = {id, nullptr, pieces, 2}, *bad = nullptr;
    return ibv_post_srq_recv(srq, &request, &bad) == 0;
  }
  bool post(uint64_t id, ibv_wr_opcode opcode, uint32_t length, uint32_t number, uint64_t add = 0) {
    ibv_sge piece = {reinterpret_cast<uintptr_t>(buffer), length, mr->lkey};
    ibv_send_wr request = {}, *bad = nullptr;
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = 0x1234;
    request.qp_type.xrc.remote_srqn = number;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      request.wr.atomic.remote_addr = shared->address + kBufferSize / 2;
      request.wr.atomic.rkey = shared->rkey;
      request.wr.atomic.compare_add = add;
      request.wr.atomic.swap = 1000;
    } else {
      request.wr.rdma.remote_addr = shared->address;
      request.wr.rdma.rkey = shared->rkey;
    }
    return ibv_post_send(qp, &request, &bad) == 0;
  }
  bool ends(uint64_t id, ibv_wc_status status) const {
    ibv_wc completion = {};
    if (!wait_for(cq, completion)) return false;
    if (completion.wr_id == id && completion.status == status) return true;
    fprintf(stderr, "completion %d of request %d\n", completion.status, static_cast<int>(completion.wr_id));
    return false;
  }
  bool does(uint64_t id, ibv_wr_opcode opcode, uint32_t length, uint64_t add = 0) {
    return post(id, opcode, length, shared->number, add) && ends(id, IBV_WC_SUCCESS);
  }
  bool received(uint64_t id, uint32_t length, ibv_wc_opcode opcode = IBV_WC_RECV) const {
    ibv_wc completion = {};
    return wait_for(cq, completion) && completion.status == IBV_WC_SUCCESS && completion.wr_id == id &&
           completion.opcode == opcode && (opcode != IBV_WC_RECV || completion.byte_len == length) &&
           completion.qp_num == shared->target && completion.src_qp == shared->sender;
  }
  // `of`: null for an event of any queue pair.
  bool next_event(ibv_event_type type, const ibv_qp* of = nullptr) const {
    pollfd waiting = {context->async_fd, POLLIN, 0};
    ibv_async_event event = {};
    if (poll(&waiting, 1, static_cast<int>(kPatience * 1000)) != 1 || ibv_get_async_event(context, &event) != 0)
      return false;
    ibv_ack_async_event(&event);
    // A connection tells that it is established, too.
    if (event.event_type == IBV_EVENT_COMM_EST) return next_event(type, of);
    return event.event_type == type && (of == nullptr || event.element.qp == of);
  }
};

char byte_at(size_t place) {
  return static_cast<char>(place * 7 + place / 256);
}
bool has_bytes(const char* from, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (from[i] != byte_at(i)) return false;
  }
  return true;
}
void fill(char* to, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = byte_at(i);
}

// Starts a process with objects of its own.
template <typename Body>
pid_t start(Body body) {
  return start_process([body] {
    const auto member = std::make_unique<Member>();
    return body(*member);
  });
}
void begin(const char* name) {
  fprintf(stderr, "%s\n", name);
  new (shared) Shared;
}
void expect_end(pid_t process, const char* name) {
  if (!ends_with(process, 0)) failed(name);
}
// The kernel stops a process' threads one after the other, so they may go on for a moment.
void stop_process(pid_t process) {
  kill(process, SIGSTOP);
  int status = 0;
  if (waitpid(process, &status, WUNTRACED) != process || !WIFSTOPPED(status)) failed("a process does not stop");
}
void kill_process(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

// How the three processes begin. The target makes the domain and lets the others begin (turn 1).
bool begin_target(Member& member) {
  if (!member.open(O_CREAT)) return false;
  next_turn(1);
  return member.make_target();
}
bool begin_owner(Member& member) {
  return wait_for_turn(1) && member.open(0) && member.make_queue();
}
bool begin_sender(Member& member) {
  return wait_for_turn(1) && member.open() && member.make_sender();
}

// The target's process: makes the queue pair, and leaves at the last turn.
int be_target(Member& member, int last) {
  MUST(begin_target(member));
  MUST(wait_for_turn(last));
  return 0;
}

// --- All operations

int own_all(Member& member) {
  MUST(wait_for_turn(1) && member.open());
  MUST(open_domain(member.context, file, O_CREAT | O_EXCL) == nullptr && errno == EINVAL);
  // The domain of another file.
  MUST(open_domain(member.context, memfd_create("other", 0), 0) == nullptr && errno == EAGAIN);
  member.domain = open_domain(member.context, file, 0);
  MUST(member.domain != nullptr);
  MUST(member.make_queue());
  MUST(await(kPatience, [] { return shared->sender != 0; }));
  ibv_qp* handle = member.open_target();
  MUST(handle != nullptr && handle->qp_num == shared->target);
  MUST(member.receive(1, 0, kLong) && member.receive(2, 40000, 100) && member.receive(3, 0, 0));
  next_turn(2);
  MUST(member.received(1, kLong) && has_bytes(member.buffer, kLong));
  MUST(member.received(2, 0) && member.received(3, 0, IBV_WC_RECV_RDMA_WITH_IMM));
  MUST(has_bytes(member.buffer, kLong));
  memset(member.buffer, 'r', kLong);
  const uint64_t five = 5;
  memcpy(member.buffer + kBufferSize / 2, &five, sizeof five);
  // Without a receive at first, and without a poll.
  MUST(ibv_req_notify_cq(member.cq, 0) == 0);
  next_turn(3);
  MUST(wait_for_turn(4));
  usleep(50000);
  MUST(member.receive(4, 0, 10));
  ibv_cq* told = nullptr;
  void* context = nullptr;
  MUST(ibv_get_cq_event(member.channel, &told, &context) == 0 && told == member.cq);
  ibv_ack_cq_events(told, 1);
  MUST(member.received(4, 10));
  uint64_t sum = 0;
  memcpy(&sum, member.buffer + kBufferSize / 2, sizeof sum);
  MUST(sum == 1000);
  next_turn(5);
  // The handle cannot do what the kernel's can.
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  attr.qp_state = IBV_QPS_ERR;
  MUST(ibv_query_qp(handle, &attr, IBV_QP_STATE, &init) == EOPNOTSUPP);
  MUST(ibv_modify_qp(handle, &attr, IBV_QP_STATE) == EOPNOTSUPP);
  MUST(member.next_event(IBV_EVENT_QP_REQ_ERR, handle));
  MUST(ibv_destroy_qp(handle) == 0);
  MUST(ibv_destroy_srq(member.srq) == 0 && ibv_close_xrcd(member.domain) == 0);
  next_turn(6);
  return 0;
}

int send_all(Member& member) {
  MUST(begin_sender(member) && wait_for_turn(2));
  fill(member.buffer, kLong);
  MUST(member.does(1, IBV_WR_SEND, kLong));
  MUST(member.does(2, IBV_WR_SEND_WITH_IMM, 0));
  MUST(member.does(3, IBV_WR_RDMA_WRITE, kLong));
  MUST(member.does(4, IBV_WR_RDMA_WRITE_WITH_IMM, kLong));
  MUST(wait_for_turn(3));
  MUST(member.does(5, IBV_WR_RDMA_READ, kLong));
  for (uint32_t i = 0; i < kLong; ++i) MUST(member.buffer[i] == 'r');
  uint64_t old = 0;
  MUST(member.does(6, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 3));
  memcpy(&old, member.buffer, sizeof old);
  MUST(old == 5);
  MUST(member.does(7, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8));
  memcpy(&old, member.buffer, sizeof old);
  MUST(old == 8);
  MUST(member.post(8, IBV_WR_SEND, 10, shared->number));
  next_turn(4);
  MUST(member.ends(8, IBV_WC_SUCCESS) && wait_for_turn(5));
  // A number without a queue.
  MUST(member.post(9, IBV_WR_SEND, 10, shared->number ^ 0x800000) && member.ends(9, IBV_WC_REM_INV_REQ_ERR));
  return 0;
}

void all_operations_reach_the_owner() {
  begin("all operations");
  const pid_t target = start([](Member& member) { return be_target(member, 6); });
  const pid_t owner = start(own_all);
  expect_end(start(send_all), "the sender");
  expect_end(owner, "the owner");
  expect_end(target, "the target");
}

// --- Ends

// Makes a queue with receives, and a handle of the queue pair.
int prepare_owner(Member& member, ibv_qp*& handle) {
  MUST(begin_owner(member));
  MUST(await(kPatience, [] { return shared->sender != 0; }));
  handle = member.open_target();
  MUST(handle != nullptr);
  for (uint64_t id = 1; id < 6; ++id) MUST(member.receive(id, 0, 100));
  next_turn(2);
  MUST(member.received(1, 10));
  next_turn(3);
  return 0;
}

int own_until_killed(Member& member) {
  ibv_qp* handle = nullptr;
  if (prepare_owner(member, handle) != 0) return 1;
  pause();
  return 1;
}

// Sends until turn 3, and once more at turn 4.
int send_until_the_end(Member& member, ibv_wc_status status) {
  MUST(begin_sender(member) && wait_for_turn(2));
  MUST(member.does(1, IBV_WR_SEND, 10) && wait_for_turn(4));
  MUST(member.post(2, IBV_WR_SEND, 10, shared->number) && member.ends(2, status));
  next_turn(5);
  return 0;
}

// The number of a killed owner leads nowhere.
void a_killed_owner() {
  begin("a killed owner");
  const pid_t target = start([](Member& member) { return be_target(member, 5); });
  const pid_t owner = start(own_until_killed);
  const pid_t sender = start([](Member& member) { return send_until_the_end(member, IBV_WC_REM_INV_REQ_ERR); });
  wait_for_turn(3);
  kill_process(owner);
  next_turn(4);
  expect_end(sender, "the sender");
  expect_end(target, "the target");
}

// A stopped owner is not ready.
void a_stopped_owner() {
  begin("a stopped owner");
  const pid_t target = start([](Member& member) { return be_target(member, 5); });
  const pid_t owner = start(own_until_killed);
  const pid_t sender = start([](Member& member) { return send_until_the_end(member, IBV_WC_SUCCESS); });
  wait_for_turn(3);
  stop_process(owner);
  next_turn(4);
  usleep(1'500'000);
  if (shared->turn != 4) failed("the sender goes on without the owner");
  kill(owner, SIGCONT);
  expect_end(sender, "the sender");
  kill_process(owner);
  expect_end(target, "the target");
}

// The queue pair ends with its process, and handles hear of it.
void a_killed_target() {
  begin("a killed target");
  const pid_t target = start([](Member& member) { return be_target(member, 9); });
  const pid_t owner = start([](Member& member) {
    ibv_qp* handle = nullptr;
    if (prepare_owner(member, handle) != 0) return 1;
    MUST(member.next_event(IBV_EVENT_QP_FATAL, handle));
    MUST(member.open_target() == nullptr && errno == EINVAL);
    MUST(ibv_destroy_qp(handle) == 0 && ibv_destroy_srq(member.srq) == 0 && ibv_close_xrcd(member.domain) == 0);
    MUST(wait_for_turn(5));
    return 0;
  });
  const pid_t sender = start([](Member& member) { return send_until_the_end(member, IBV_WC_RETRY_EXC_ERR); });
  wait_for_turn(3);
  kill_process(target);
  next_turn(4);
  expect_end(sender, "the sender");
  expect_end(owner, "the owner");
}

// The queue pair lives as long as a process has a handle, and its own process the domain.
void the_last_handle() {
  begin("the last handle");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(3));
    MUST(ibv_destroy_qp(member.qp) == 0);
    next_turn(4);
    MUST(wait_for_turn(7));
    MUST(ibv_close_xrcd(member.domain) == 0);
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    ibv_qp* handle = nullptr;
    if (prepare_owner(member, handle) != 0) return 1;
    ibv_qp* second = member.open_target();
    MUST(second != nullptr && ibv_destroy_qp(second) == 0);
    MUST(member.received(2, 10) && wait_for_turn(5));
    MUST(ibv_destroy_qp(handle) == 0);
    MUST(await(kPatience, [&] { return member.open_target() == nullptr; }) && errno == EINVAL);
    next_turn(6);
    return 0;
  });
  const pid_t sender = start([](Member& member) {
    if (send_until_the_end(member, IBV_WC_SUCCESS) != 0) return 1;
    MUST(wait_for_turn(6));
    MUST(member.post(3, IBV_WR_SEND, 10, shared->number) && member.ends(3, IBV_WC_RETRY_EXC_ERR));
    next_turn(7);
    return 0;
  });
  for (const pid_t process : {sender, owner, target}) expect_end(process, "the last handle");
}

// The target asks the stopped owner for the sender (turns 3 and 4), and then takes turns 5 and 6.
void stop_before_the_answer(pid_t owner) {
  wait_for_turn(2);
  stop_process(owner);
  next_turn(3);
  wait_for_turn(4);
  // Until the target has asked.
  usleep(300'000);
  next_turn(5);
  wait_for_turn(6);
}

bool to_reset(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

// A queue pair may end while an owner still has a question of it. The owner then gets its receive back.
void a_queue_pair_that_ends_before_the_answer() {
  begin("a queue pair that ends before the answer");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(5));
    MUST(ibv_destroy_qp(member.qp) == 0);
    next_turn(6);
    MUST(wait_for_turn(7));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(begin_owner(member) && member.receive(1, 0, 100));
    next_turn(2);
    ibv_wc completion = {};
    MUST(wait_for(member.cq, completion) && completion.status == IBV_WC_WR_FLUSH_ERR && completion.wr_id == 1);
    next_turn(7);
    return 0;
  });
  const pid_t sender = start([](Member& member) {
    MUST(begin_sender(member) && wait_for_turn(3));
    MUST(member.post(1, IBV_WR_SEND, 10, shared->number));
    next_turn(4);
    MUST(wait_for_turn(7) && to_reset(member.qp));
    return 0;
  });
  stop_before_the_answer(owner);
  kill(owner, SIGCONT);
  for (const pid_t process : {owner, sender, target}) expect_end(process, "the end before the answer");
}

// An atomic of the next connection looks like one of the last connection whose answer the target never got.
void a_reset_before_the_answer() {
  begin("a reset before the answer");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(5));
    MUST(to_reset(member.qp) && connect(member.qp, shared->sender));
    next_turn(6);
    MUST(wait_for_turn(8));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(begin_owner(member));
    next_turn(2);
    MUST(wait_for_turn(8));
    uint64_t sum = 0;
    memcpy(&sum, member.buffer + kBufferSize / 2, sizeof sum);
    MUST(sum == 6);
    return 0;
  });
  const pid_t sender = start([](Member& member) {
    MUST(begin_sender(member) && wait_for_turn(3));
    MUST(member.post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, shared->number, 3));
    next_turn(4);
    MUST(wait_for_turn(7));
    MUST(to_reset(member.qp) && connect(member.qp, shared->target));
    MUST(member.does(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 3));
    uint64_t old = 0;
    memcpy(&old, member.buffer, sizeof old);
    MUST(old == 3);
    next_turn(8);
    return 0;
  });
  stop_before_the_answer(owner);
  kill(owner, SIGCONT);
  next_turn(7);
  for (const pid_t process : {sender, owner, target}) expect_end(process, "the reset before the answer");
}

// A handle that cannot be had, as its process does not answer, does not keep the queue pair.
void a_stopped_target() {
  begin("a stopped target");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(3));
    MUST(ibv_destroy_qp(member.qp) == 0);
    next_turn(4);
    MUST(wait_for_turn(5));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(wait_for_turn(1) && member.open(0) && await(kPatience, [] { return shared->target != 0; }));
    shared->sender = 1;
    MUST(wait_for_turn(2));
    // The second one is not even asked for.
    MUST(member.open_target() == nullptr && errno == ETIMEDOUT);
    MUST(member.open_target() == nullptr && errno == ETIMEDOUT);
    next_turn(3);
    MUST(wait_for_turn(4));
    MUST(await(5, [&] { return member.open_target() == nullptr && errno == EINVAL; }));
    next_turn(5);
    return 0;
  });
  await(kPatience, [] { return shared->sender != 0; });
  usleep(100'000);
  stop_process(target);
  next_turn(2);
  wait_for_turn(3);
  kill(target, SIGCONT);
  for (const pid_t process : {owner, target}) expect_end(process, "the stopped target");
}

// More than the ring of a channel holds.
constexpr int kManyNotices = 1500;

// Notices to a stopped process wait until it goes on, and then the process gets each of them.
void many_handles_of_a_stopped_target() {
  begin("many handles of a stopped target");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(2));
    MUST(ibv_destroy_qp(member.qp) == 0);
    next_turn(3);
    MUST(wait_for_turn(6));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(wait_for_turn(1) && member.open(0) && await(kPatience, [] { return shared->target != 0; }));
    shared->sender = 1;
    static ibv_qp* handles[kManyNotices];
    for (ibv_qp*& handle : handles) MUST((handle = member.open_target()) != nullptr);
    next_turn(2);
    MUST(wait_for_turn(4));
    for (ibv_qp* handle : handles) MUST(ibv_destroy_qp(handle) == 0);
    next_turn(5);
    // The queue pair has no handle left, and ends.
    MUST(await(kPatience, [&] { return member.open_target() == nullptr && errno == EINVAL; }));
    next_turn(6);
    return 0;
  });
  wait_for_turn(3);
  stop_process(target);
  next_turn(4);
  wait_for_turn(5);
  kill(target, SIGCONT);
  for (const pid_t process : {owner, target}) expect_end(process, "many handles");
}

void events_of_many_queue_pairs_for_a_stopped_process() {
  begin("events of many queue pairs for a stopped process");
  static uint32_t* numbers = static_cast<uint32_t*>(
      mmap(nullptr, kManyNotices * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t target = start([](Member& member) {
    // This one keeps the domain.
    MUST(member.open(O_CREAT));
    const auto other = std::make_unique<Member>();
    MUST(other->open(0));
    for (int i = 0; i < kManyNotices; ++i) {
      MUST(other->create_target());
      numbers[i] = other->qp->qp_num;
    }
    next_turn(1);
    MUST(wait_for_turn(3));
    // The queue pairs end with their device.
    MUST(ibv_close_device(other->context) == 0);
    next_turn(4);
    MUST(wait_for_turn(5));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(wait_for_turn(1) && member.open(0));
    for (int i = 0; i < kManyNotices; ++i) {
      shared->target = numbers[i];
      MUST(member.open_target() != nullptr);
    }
    next_turn(2);
    for (int i = 0; i < kManyNotices; ++i) MUST(member.next_event(IBV_EVENT_QP_FATAL));
    next_turn(5);
    return 0;
  });
  wait_for_turn(2);
  stop_process(owner);
  next_turn(3);
  wait_for_turn(4);
  kill(owner, SIGCONT);
  for (const pid_t process : {owner, target}) expect_end(process, "events of many queue pairs");
}

// Another process may have the place of a killed one at once, but has not its handles.
void a_successor_of_a_killed_process() {
  begin("a successor of a killed process");
  const pid_t target = start([](Member& member) {
    MUST(begin_target(member) && wait_for_turn(4));
    MUST(ibv_destroy_qp(member.qp) == 0);
    next_turn(5);
    MUST(wait_for_turn(6));
    return 0;
  });
  const pid_t owner = start([](Member& member) {
    MUST(wait_for_turn(1) && member.open(0) && await(kPatience, [] { return shared->target != 0; }));
    MUST(member.open_target() != nullptr);
    next_turn(2);
    pause();
    return 1;
  });
  const pid_t successor = start([](Member& member) {
    MUST(member.open());
    shared->sender = 1;
    MUST(wait_for_turn(3));
    member.domain = open_domain(member.context, file, 0);
    MUST(member.domain != nullptr);
    next_turn(4);
    MUST(wait_for_turn(5));
    usleep(500'000);
    MUST(member.open_target() == nullptr && errno == EINVAL);
    next_turn(6);
    return 0;
  });
  wait_for_turn(2);
  await(kPatience, [] { return shared->sender != 0; });
  kill_process(owner);
  next_turn(3);
  for (const pid_t process : {successor, target}) expect_end(process, "the successor");
}

// --- Domains

int expect_domain(int fd, int flags, int error) {
  const auto member = std::make_unique<Member>();
  MUST(member->open());
  // dappled may hear of a death, or of a domain, a moment later.
  const bool is_so = await(kPatience, [&] {
    ibv_xrcd* domain = open_domain(member->context, fd, flags);
    const int found = domain == nullptr ? errno : 0;
    return found == error || (domain != nullptr && ibv_close_xrcd(domain) != 0);
  });
  MUST(is_so);
  return 0;
}

pid_t hold_domain(int fd) {
  shared->turn = 0;
  const pid_t holder = start([fd](Member& member) {
    MUST(member.open() && open_domain(member.context, fd, O_CREAT | O_EXCL) != nullptr);
    next_turn(1);
    pause();
    return 1;
  });
  if (!wait_for_turn(1)) failed("no domain");
  return holder;
}

void a_domain_ends_with_its_last_process() {
  begin("domains");
  const pid_t holder = hold_domain(file);
  expect_end(start_process([] { return expect_domain(file, 0, 0); }), "the domain of a living process");
  kill_process(holder);
  expect_end(start_process([] { return expect_domain(file, 0, EAGAIN); }), "the domain of a killed process");
  expect_end(start_process([] { return expect_domain(file, O_CREAT | O_EXCL, 0); }), "a new domain");
}

// The inode names the domain, not the path.
void an_unlinked_file_keeps_its_domain() {
  char path[] = "/tmp/dapple-xrc-XXXXXX";
  const int unlinked = mkstemp(path);
  unlink(path);
  const int other = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  unlink(path);
  const pid_t holder = hold_domain(unlinked);
  expect_end(start_process([=] { return expect_domain(unlinked, 0, 0); }), "the unlinked file");
  expect_end(start_process([=] { return expect_domain(other, 0, EAGAIN); }), "the new file");
  kill_process(holder);
  close(unlinked);
  close(other);
}

// Members tell the next dappled of their domains.
void a_domain_survives_dappled() {
  const pid_t holder = hold_domain(file);
  Watcher watcher;
  if (!watcher.kill_dappled()) failed("no dappled to kill");
  watcher.close();
  expect_end(start_process([] { return expect_domain(file, 0, 0); }), "the domain after dappled's death");
  kill_process(holder);
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  file = memfd_create("domain", 0);
  all_operations_reach_the_owner();
  a_killed_owner();
  a_stopped_owner();
  a_killed_target();
  the_last_handle();
  a_queue_pair_that_ends_before_the_answer();
  a_reset_before_the_answer();
  a_stopped_target();
  many_handles_of_a_stopped_target();
  events_of_many_queue_pairs_for_a_stopped_process();
  a_successor_of_a_killed_process();
  a_domain_ends_with_its_last_process();
  an_unlinked_file_keeps_its_domain();
  a_domain_survives_dappled();
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
