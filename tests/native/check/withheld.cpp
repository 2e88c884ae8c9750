// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// withheld NAME: looks at the buffer of a receive, Read or atomic before the poll, or writes into it, for dapple-run
// --check. The other names make no mistake: the bytes must be there with the poll.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr char kData = 5, kOld = 7, kPattern = '\xdb';
constexpr uint32_t kSize = 4000;  // of several packets
constexpr size_t kFlag = 60000;   // the place of a byte behind all messages

bool ends(ibv_cq* cq, uint64_t id) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == IBV_WC_SUCCESS && completion.wr_id == id;
}

bool all_are(const char* bytes, size_t size, char value) {
  return std::all_of(bytes, bytes + size, [&](char byte) { return byte == value; });
}

void fill(Pair& pair) {
  memset(pair.a.buffer, kData, sizeof pair.a.buffer);
  memset(pair.b.buffer, kOld, sizeof pair.b.buffer);
}

// End b receives a message of kSize bytes from end a into `offset`, and has not polled the completion.
bool receive(Pair& pair, uint64_t id, size_t offset, uint32_t room = kSize, uint32_t size = kSize) {
  return post_receive(pair.b, id, offset, room) == 0 && post_send(pair.a, 1, IBV_WR_SEND, 0, size) == 0 &&
         ends(pair.a.cq, 1);
}

// End b reads end a's bytes, and has not polled the completion.
bool read(Pair& pair, uint64_t id, unsigned flags = IBV_SEND_SIGNALED, size_t offset = 0) {
  return post_send(pair.b, id, IBV_WR_RDMA_READ, offset, kSize, &pair.a, 0, flags) == 0;
}

// The mistakes.

bool look_at_receive(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  const bool was_hidden = all_are(pair.b.buffer, kSize, kPattern);
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, kSize, kData);
}

bool look_at_read(Pair& pair) {
  if (!read(pair, 2) || !wait_for_byte(pair.b.buffer + kSize - 1, kPattern)) return false;
  const bool was_hidden = all_are(pair.b.buffer, kSize, kPattern);
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, kSize, kData);
}

bool look_at_atomic(Pair& pair) {
  uint64_t original = 0;
  memcpy(&original, pair.a.buffer, sizeof original);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer), sizeof original, pair.b.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 2;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic = {reinterpret_cast<uintptr_t>(pair.a.buffer), 1, 0, pair.a.mr->rkey};
  if (ibv_post_send(pair.b.qp, &request, &bad) != 0) return false;
  if (!wait_for_byte(pair.b.buffer, kPattern)) return false;
  return ends(pair.b.cq, 2) && memcmp(pair.b.buffer, &original, sizeof original) == 0;
}

bool write_into_receive(Pair& pair, bool before_arrival) {
  if (post_receive(pair.b, 2, 0, kSize) != 0) return false;
  if (before_arrival) pair.b.buffer[1500] = 1;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1)) return false;
  if (!before_arrival) pair.b.buffer[1500] = 1;
  return ends(pair.b.cq, 2) && all_are(pair.b.buffer, kSize, kData);
}

bool write_into_read(Pair& pair) {
  if (!read(pair, 2) || !wait_for_byte(pair.b.buffer + kSize - 1, kPattern)) return false;
  pair.b.buffer[1500] = 1;
  return ends(pair.b.cq, 2);
}

// Two messages come into the same bytes before a poll. With `value` as the bytes of the second one.
bool receive_two(Pair& pair, char value) {
  if (post_receive(pair.b, 2, 0, kSize) != 0 || post_receive(pair.b, 3, 100, kSize) != 0) return false;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1)) return false;
  pair.a.buffer[2000] = value;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1)) return false;
  return ends(pair.b.cq, 2) && ends(pair.b.cq, 3);
}

// The second receive is posted when the first message is there.
bool post_again_before_poll(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  memset(pair.a.buffer, kOld, kSize);
  return receive(pair, 3, 0) && ends(pair.b.cq, 2) && ends(pair.b.cq, 3);
}

// With the option strict=1 the pattern is there from the post on.
bool look_after_post(Pair& pair) {
  if (post_receive(pair.b, 2, 0, kSize) != 0) return false;
  const bool was_hidden = all_are(pair.b.buffer, kSize, kPattern);
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, 100) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, 2)) return false;
  return was_hidden && all_are(pair.b.buffer, 100, kData) && all_are(pair.b.buffer + 100, kSize - 100, kOld);
}

// The region of a receive is shorter than the receive. What is behind the region stays as it is.
bool look_behind_region(Pair& pair) {
  ibv_mr* small = ibv_reg_mr(pair.pd, pair.b.buffer, 100, int{IBV_ACCESS_LOCAL_WRITE});
  if (small == nullptr) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer), kSize, small->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.wr_id = 2;
  request.sg_list = &segment;
  request.num_sge = 1;
  if (ibv_post_recv(pair.b.qp, &request, &bad) != 0) return false;
  const bool stays = all_are(pair.b.buffer + 100, kSize - 100, kOld);
  return to_error(pair.b.qp) && ibv_dereg_mr(small) == 0 && stays;
}

// No mistakes.

bool poll_before_looks(Pair& pair) {
  for (uint64_t id = 0; id < 20; id++) {
    fill(pair);
    if (!receive(pair, id, 100, kSize, 1000) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, 100, kOld) || !all_are(pair.b.buffer + 100, 1000, kData)) return false;
    if (!all_are(pair.b.buffer + 1100, kSize, kOld)) return false;
    if (!read(pair, id) || !ends(pair.b.cq, id) || !all_are(pair.b.buffer, kSize, kData)) return false;
  }
  return true;
}

// All receives have one id, and the polls get several completions.
bool poll_many(Pair& pair) {
  for (size_t i = 0; i < 10; i++) {
    if (!receive(pair, 0, i * kSize)) return false;
  }
  for (int done = 0; done < 10;) {
    ibv_wc completions[4];
    const int polled = ibv_poll_cq(pair.b.cq, 4, completions);
    if (polled < 0) return false;
    done += polled;
    if (!all_are(pair.b.buffer, static_cast<size_t>(done) * kSize, kData)) return false;
  }
  return true;
}

// The completion of a request tells of the earlier requests of its queue, too.
bool read_unsignaled(Pair& pair) {
  if (!read(pair, 1, 0) || !read(pair, 2, 0, kSize)) return false;
  if (post_send(pair.b, 3, IBV_WR_RDMA_WRITE, kFlag, 8, &pair.a, kFlag) != 0 || !ends(pair.b.cq, 3)) return false;
  return all_are(pair.b.buffer, 2 * size_t{kSize}, kData);
}

// The device refuses a Read of too many pieces. The program then posts a right one with the same id.
bool read_after_refusal(Pair& pair) {
  constexpr int kPieces = 5;  // PairOptions has 4
  ibv_sge pieces[kPieces];
  for (int i = 0; i < kPieces; i++)
    pieces[i] = {reinterpret_cast<uintptr_t>(pair.b.buffer) + 8 * static_cast<uintptr_t>(i), 8, pair.b.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 2;
  request.sg_list = pieces;
  request.num_sge = kPieces;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {reinterpret_cast<uintptr_t>(pair.a.buffer), pair.a.mr->rkey};
  if (ibv_post_send(pair.b.qp, &request, &bad) == 0) return false;
  return read(pair, 2) && ends(pair.b.cq, 2) && all_are(pair.b.buffer, kSize, kData);
}

// The completion of ibv_bind_mw() tells of the earlier requests of its queue, too.
bool bind_behind_read(Pair& pair) {
  ibv_mw* window = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_1);
  if (window == nullptr || !read(pair, 1, 0)) return false;
  ibv_mw_bind bind = {};
  bind.wr_id = 2;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {pair.b.mr, reinterpret_cast<uintptr_t>(pair.b.buffer), kBufferSize, IBV_ACCESS_REMOTE_READ};
  const bool is_bound = ibv_bind_mw(pair.b.qp, window, &bind) == 0 && ends(pair.b.cq, 2);
  const bool is_there = all_are(pair.b.buffer, kSize, kData);
  return ibv_dealloc_mw(window) == 0 && is_bound && is_there;
}

// Two receives have the same bytes.
bool share(Pair& pair) {
  for (uint64_t id = 1; id <= 3; id++) {
    if (post_receive(pair.b, id, 0, kSize) != 0) return false;
  }
  for (uint64_t id = 1; id <= 3; id++) {
    memset(pair.b.buffer, kOld, kSize);
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, kSize, kData)) return false;
  }
  return true;
}

// The same, and each message has other bytes than the one before.
bool share_and_poll(Pair& pair) {
  for (uint64_t id = 1; id <= 3; id++) {
    if (post_receive(pair.b, id, 0, kSize) != 0) return false;
  }
  for (uint64_t id = 1; id <= 3; id++) {
    const char value = static_cast<char>(10 + id);
    memset(pair.a.buffer, value, kSize);
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, kSize, value)) return false;
  }
  return true;
}

// A program may wait for a peer's Write by a look at the memory. Here a receive has the same bytes.
bool wait_for_write(Pair& pair) {
  if (post_receive(pair.b, 2, kFlag, 100) != 0) return false;
  if (post_send(pair.a, 1, IBV_WR_RDMA_WRITE, 0, 8, &pair.b, kFlag, 0) != 0) return false;
  return wait_for_byte(pair.b.buffer + kFlag, kData) && to_error(pair.b.qp);
}

// Sends the result of a Read without a wait.
bool forward(Pair& pair) {
  memset(pair.a.buffer + 2 * kSize, 0, kSize);
  if (!read(pair, 1, 0)) return false;
  if (post_send(pair.b, 2, IBV_WR_RDMA_WRITE, 0, kSize, &pair.a, 2 * kSize, IBV_SEND_SIGNALED | IBV_SEND_FENCE) != 0)
    return false;
  return ends(pair.b.cq, 2) && all_are(pair.a.buffer + 2 * kSize, kSize, kData);
}

bool stop(Pair& pair, ibv_qp_state state) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  return ibv_modify_qp(pair.b.qp, &attr, IBV_QP_STATE) == 0;
}

// The receive is the program's again without a poll.
bool end_queue_pair(Pair& pair, const char* how) {
  if (!receive(pair, 2, 0) || post_receive(pair.b, 3, kSize, kSize) != 0) return false;
  if (strcmp(how, "error") == 0 && !stop(pair, IBV_QPS_ERR)) return false;
  if (strcmp(how, "reset") == 0 && !stop(pair, IBV_QPS_RESET)) return false;
  if (strcmp(how, "deregister") == 0 && (ibv_dereg_mr(pair.b.mr) != 0 || (pair.b.mr = nullptr, false))) return false;
  if (strcmp(how, "destroy") == 0) {
    if (ibv_destroy_qp(pair.b.qp) != 0) return false;
    pair.b.qp = nullptr;
  }
  const bool is_there = all_are(pair.b.buffer, kSize, kData) && all_are(pair.b.buffer + kSize, kSize, kOld);
  memset(pair.b.buffer, 0, 2 * size_t{kSize});
  return is_there;
}

// Sends these bytes with a pair of its own.
bool sends_by_own_pair(char* bytes) {
  const std::unique_ptr<Pair> own(make_pair({}));
  ibv_mr* mr = own == nullptr ? nullptr : ibv_reg_mr(own->pd, bytes, kSize, int{IBV_ACCESS_LOCAL_WRITE});
  if (mr == nullptr || post_receive(own->b, 2, 0, kSize) != 0) return false;
  memset(bytes, kOld, kSize);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(bytes), kSize, mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 1;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  const bool is_sent = ibv_post_send(own->a.qp, &request, &bad) == 0 && ends(own->a.cq, 1) && ends(own->b.cq, 2);
  return ibv_dereg_mr(mr) == 0 && is_sent && all_are(own->b.buffer, kSize, kOld);
}

// A child of fork() uses its copy of the memory into which its parent's receive has brought bytes.
bool fork_child(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  const pid_t child = fork();
  if (child == 0) _exit(sends_by_own_pair(pair.b.buffer) ? 0 : 1);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return false;
  return ends(pair.b.cq, 2) && all_are(pair.b.buffer, kSize, kData);
}

// The receives of a shared queue, with one id.
bool receive_shared(Pair& pair) {
  for (size_t i = 0; i < 4; i++) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer + i * kSize), kSize, pair.b.mr->lkey};
    ibv_recv_wr request = {}, *bad = nullptr;
    request.sg_list = &segment;
    request.num_sge = 1;
    if (ibv_post_srq_recv(pair.srq, &request, &bad) != 0) return false;
  }
  for (size_t i = 1; i <= 4; i++) {
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.a.cq, 1)) return false;
    const bool was_hidden = all_are(pair.b.buffer + (i - 1) * kSize, kSize, kPattern);
    if (!was_hidden || !ends(pair.b.cq, 0) || !all_are(pair.b.buffer, i * kSize, kData)) return false;
  }
  return true;
}

// The extended interface of completion queues.
bool poll_extended(Pair& pair) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = kDepth;
  ibv_cq_ex* cq = ibv_create_cq_ex(pair.context, &attr);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
  init.cap = {kDepth, kDepth, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pair.pd, &init);
  if (qp == nullptr || !stop(pair, IBV_QPS_RESET)) return false;
  if (!connect(qp, pair.b.qp->qp_num) || !connect(pair.b.qp, qp->qp_num)) return false;
  for (uint64_t id = 0; id < 2; id++) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.a.buffer + id * kSize), kSize, pair.a.mr->lkey};
    ibv_recv_wr request = {}, *bad = nullptr;
    request.wr_id = id;
    request.sg_list = &segment;
    request.num_sge = 1;
    if (ibv_post_recv(qp, &request, &bad) != 0) return false;
    if (post_send(pair.b, 1, IBV_WR_SEND, 0, kSize) != 0 || !ends(pair.b.cq, 1)) return false;
  }
  ibv_poll_cq_attr poll = {};
  bool good = all_are(pair.a.buffer, 2 * size_t{kSize}, kPattern) && ibv_start_poll(cq, &poll) == 0;
  good = good && all_are(pair.a.buffer, kSize, kOld) && pair.a.buffer[kSize] == kPattern && ibv_next_poll(cq) == 0;
  good = good && all_are(pair.a.buffer + kSize, kSize, kOld);
  ibv_end_poll(cq);
  return ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0 && good;
}

struct Case {
  const char* name;
  bool (*run)(Pair&);
};

constexpr Case kCases[] = {
    {"receive", look_at_receive},
    {"read", look_at_read},
    {"atomic", look_at_atomic},
    {"written-early", [](Pair& pair) { return write_into_receive(pair, true); }},
    {"written", [](Pair& pair) { return write_into_receive(pair, false); }},
    {"written-read", write_into_read},
    {"strict", look_after_post},
    {"behind", look_behind_region},
    {"polled", poll_before_looks},
    {"many", poll_many},
    {"unsignaled", read_unsignaled},
    {"refused", read_after_refusal},
    {"bound", bind_behind_read},
    {"shared", share},
    {"write", wait_for_write},
    {"forwarded", forward},
    {"error", [](Pair& pair) { return end_queue_pair(pair, "error"); }},
    {"reset", [](Pair& pair) { return end_queue_pair(pair, "reset"); }},
    {"destroy", [](Pair& pair) { return end_queue_pair(pair, "destroy"); }},
    {"deregister", [](Pair& pair) { return end_queue_pair(pair, "deregister"); }},
    {"overwritten", [](Pair& pair) { return receive_two(pair, kOld); }},
    {"overwritten-again", post_again_before_poll},
    {"overwritten-equal", [](Pair& pair) { return receive_two(pair, kData); }},
    {"shared-other", share_and_poll},
    {"child", fork_child},
    {"srq", receive_shared},
    {"extended", poll_extended},
};

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  const char* name = count == 2 ? words[1] : "";
  const auto* found =
      std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& one) { return strcmp(one.name, name) == 0; });
  const std::unique_ptr<Pair> pair(make_pair({.srq = strcmp(name, "srq") == 0, .windows = true}));
  if (pair == nullptr || found == std::end(kCases)) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  fill(*pair);
  const bool good = found->run(*pair);
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}
