// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// withheld NAME [SIZE]: looks at the buffer of a receive, Read or atomic before the poll, or writes into it, for
// dapple-run
// --check. The other names make no mistake: the bytes must be there with the poll.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
// The size of a message, which has several packets. In one of two pages or more a page lies wholly in each buffer.
uint32_t size = 4000;
constexpr size_t kFlag = 60000;  // the place of a byte behind all messages

bool ends(ibv_cq* cq, uint64_t id) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == IBV_WC_SUCCESS && completion.wr_id == id;
}

bool all_are(const char* bytes, size_t count, char value) {
  return std::all_of(bytes, bytes + count, [&](char byte) { return byte == value; });
}

void fill(Pair& pair) {
  memset(pair.a.buffer, kData, sizeof pair.a.buffer);
  memset(pair.b.buffer, kOld, sizeof pair.b.buffer);
}

// End b receives a message of `size` bytes from end a into `offset`, and has not polled the completion.
bool receive(Pair& pair, uint64_t id, size_t offset, uint32_t room = size, uint32_t length = size) {
  return post_receive(pair.b, id, offset, room) == 0 && post_send(pair.a, 1, IBV_WR_SEND, 0, length) == 0 &&
         ends(pair.a.cq, 1);
}

// End b reads end a's bytes, and has not polled the completion.
bool read(Pair& pair, uint64_t id, unsigned flags = IBV_SEND_SIGNALED, size_t offset = 0) {
  return post_send(pair.b, id, IBV_WR_RDMA_READ, offset, size, &pair.a, 0, flags) == 0;
}

// A look at a whole page of a buffer is reported, so only programs that make this mistake may look.
bool is_closed() {
  return size >= 4096;
}

// The mistakes.

// The program goes on, and finds the bytes with the poll.
bool see_receive(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  const bool was_hidden = pair.b.buffer[10] == kPattern;
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, size, kData);
}

bool see_read(Pair& pair, bool writes) {
  if (!read(pair, 2)) return false;
  auto* const byte = static_cast<volatile char*>(pair.b.buffer + 10);
  const bool was_hidden = *byte != kData;
  if (writes) *byte = 1;
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, size, kData);
}

bool write_into_closed(Pair& pair) {
  if (!read(pair, 2)) return false;
  *static_cast<volatile char*>(pair.b.buffer + 10) = 1;
  return ends(pair.b.cq, 2) && all_are(pair.b.buffer, size, kData);
}

// write(2) cannot read the bytes.
bool give_to_system(Pair& pair) {
  int ends_of_pipe[2];
  if (!read(pair, 2) || pipe(ends_of_pipe) != 0) return false;
  errno = 0;
  const bool is_refused = write(ends_of_pipe[1], pair.b.buffer, 8) == -1 && errno == EFAULT;
  return ends(pair.b.cq, 2) && is_refused && all_are(pair.b.buffer, size, kData);
}

ibv_send_wr signaled(ibv_wr_opcode opcode, uint64_t id, ibv_sge& segment) {
  ibv_send_wr request = {};
  request.wr_id = id;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  return request;
}

// A Read into memory of its own is outstanding.
constexpr size_t kBlock = 16384;
ibv_mr* read_into(Pair& pair, void* block) {
  ibv_mr* mr = ibv_reg_mr(pair.pd, block, kBlock, int{IBV_ACCESS_LOCAL_WRITE});
  if (mr == nullptr) return nullptr;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(block), kBlock, mr->lkey};
  ibv_send_wr request = signaled(IBV_WR_RDMA_READ, 2, segment), *bad = nullptr;
  request.wr.rdma = {reinterpret_cast<uintptr_t>(pair.a.buffer), pair.a.mr->rkey};
  return ibv_post_send(pair.b.qp, &request, &bad) == 0 ? mr : nullptr;
}

char* map_block() {
  void* block = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

// The C library writes into a block that it gets back.
bool free_with_read(Pair& pair) {
  void* const block = aligned_alloc(4096, kBlock);
  ibv_mr* mr = read_into(pair, block);
  free(block);
  return mr != nullptr && ends(pair.b.cq, 2) && ibv_dereg_mr(mr) == 0;
}

bool reallocate_with_read(Pair& pair) {
  auto* const block = static_cast<char*>(aligned_alloc(4096, kBlock));
  block[5] = kOld;
  ibv_mr* mr = read_into(pair, block);
  if (mr == nullptr) return false;
  auto* const moved = static_cast<volatile char*>(realloc(block, 100 * kBlock));
  return moved != nullptr && (moved[5] == kOld || moved[5] == kPattern || moved[5] == kData) && ends(pair.b.cq, 2) &&
         ibv_dereg_mr(mr) == 0;
}

bool move_with_read(Pair& pair) {
  char *const block = map_block(), *const place = map_block();
  memset(block, kOld, kBlock);
  ibv_mr* mr = read_into(pair, block);
  if (mr == nullptr) return false;
  auto* const moved = static_cast<volatile char*>(mremap(block, kBlock, kBlock, MREMAP_MAYMOVE | MREMAP_FIXED, place));
  if (moved != place) return false;
  moved[5] = 1;
  return moved[5] == 1 && to_error(pair.b.qp) && ibv_dereg_mr(mr) == 0;
}

// The rights that the program gives stay.
bool protect_with_read(Pair& pair) {
  char* const block = map_block();
  ibv_mr* mr = read_into(pair, block);
  if (mr == nullptr || mprotect(block, kBlock, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  if (!ends(pair.b.cq, 2) || !all_are(block, kBlock, kData)) return false;
  char line[256], wanted[32];
  snprintf(wanted, sizeof wanted, "%zx-", reinterpret_cast<size_t>(block));
  FILE* maps = fopen("/proc/self/maps", "r");
  bool is_found = false;
  while (!is_found && fgets(line, sizeof line, maps) != nullptr)
    is_found = strncmp(line, wanted, strlen(wanted)) == 0 && strstr(line, " rwxp ") != nullptr;
  fclose(maps);
  return ibv_dereg_mr(mr) == 0 && is_found;
}

bool look_at_receive(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  const bool was_hidden = all_are(pair.b.buffer, size, kPattern);
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, size, kData);
}

bool look_at_read(Pair& pair) {
  if (!read(pair, 2) || !wait_for_byte(pair.b.buffer + size - 1, kPattern)) return false;
  const bool was_hidden = all_are(pair.b.buffer, size, kPattern);
  return ends(pair.b.cq, 2) && was_hidden && all_are(pair.b.buffer, size, kData);
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
  if (post_receive(pair.b, 2, 0, size) != 0) return false;
  if (before_arrival) pair.b.buffer[1500] = 1;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1)) return false;
  if (!before_arrival) pair.b.buffer[1500] = 1;
  return ends(pair.b.cq, 2) && all_are(pair.b.buffer, size, kData);
}

bool write_into_read(Pair& pair) {
  if (!read(pair, 2) || !wait_for_byte(pair.b.buffer + size - 1, kPattern)) return false;
  pair.b.buffer[1500] = 1;
  return ends(pair.b.cq, 2);
}

// Two messages come into the same bytes before a poll. With `value` as the bytes of the second one.
bool receive_two(Pair& pair, char value) {
  if (post_receive(pair.b, 2, 0, size) != 0 || post_receive(pair.b, 3, 100, size) != 0) return false;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1)) return false;
  pair.a.buffer[2000] = value;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1)) return false;
  return ends(pair.b.cq, 2) && ends(pair.b.cq, 3);
}

// The second receive is posted when the first message is there.
bool post_again_before_poll(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  memset(pair.a.buffer, kOld, size);
  return receive(pair, 3, 0) && ends(pair.b.cq, 2) && ends(pair.b.cq, 3);
}

// With the option strict=1 the pattern is there from the post on.
bool look_after_post(Pair& pair) {
  if (post_receive(pair.b, 2, 0, size) != 0) return false;
  const bool was_hidden = all_are(pair.b.buffer, size, kPattern);
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, 100) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, 2)) return false;
  return was_hidden && all_are(pair.b.buffer, 100, kData) && all_are(pair.b.buffer + 100, size - 100, kOld);
}

// The region of a receive is shorter than the receive. What is behind the region stays as it is.
bool look_behind_region(Pair& pair) {
  ibv_mr* small = ibv_reg_mr(pair.pd, pair.b.buffer, 100, int{IBV_ACCESS_LOCAL_WRITE});
  if (small == nullptr) return false;
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer), size, small->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.wr_id = 2;
  request.sg_list = &segment;
  request.num_sge = 1;
  if (ibv_post_recv(pair.b.qp, &request, &bad) != 0) return false;
  const bool stays = all_are(pair.b.buffer + 100, size - 100, kOld);
  return to_error(pair.b.qp) && ibv_dereg_mr(small) == 0 && stays;
}

// No mistakes.

bool poll_before_looks(Pair& pair) {
  for (uint64_t id = 0; id < 20; id++) {
    fill(pair);
    if (!receive(pair, id, 100, size, 1000) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, 100, kOld) || !all_are(pair.b.buffer + 100, 1000, kData)) return false;
    if (!all_are(pair.b.buffer + 1100, size, kOld)) return false;
    if (!read(pair, id) || !ends(pair.b.cq, id) || !all_are(pair.b.buffer, size, kData)) return false;
  }
  return true;
}

// All receives have one id, and the polls get several completions.
bool poll_many(Pair& pair) {
  const int count = static_cast<int>(kFlag / size);
  for (size_t i = 0; i < static_cast<size_t>(count); i++) {
    if (!receive(pair, 0, i * size)) return false;
  }
  for (int done = 0; done < count;) {
    ibv_wc completions[4];
    const int polled = ibv_poll_cq(pair.b.cq, 4, completions);
    if (polled < 0) return false;
    done += polled;
    if (!all_are(pair.b.buffer, static_cast<size_t>(done) * size, kData)) return false;
  }
  return true;
}

// The completion of a request tells of the earlier requests of its queue, too.
bool read_unsignaled(Pair& pair) {
  if (!read(pair, 1, 0) || !read(pair, 2, 0, size)) return false;
  if (post_send(pair.b, 3, IBV_WR_RDMA_WRITE, kFlag, 8, &pair.a, kFlag) != 0 || !ends(pair.b.cq, 3)) return false;
  return all_are(pair.b.buffer, 2 * size_t{size}, kData);
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
  return read(pair, 2) && ends(pair.b.cq, 2) && all_are(pair.b.buffer, size, kData);
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
  const bool is_there = all_are(pair.b.buffer, size, kData);
  return ibv_dealloc_mw(window) == 0 && is_bound && is_there;
}

// Two receives have the same bytes.
bool share(Pair& pair) {
  for (uint64_t id = 1; id <= 3; id++) {
    if (post_receive(pair.b, id, 0, size) != 0) return false;
  }
  for (uint64_t id = 1; id <= 3; id++) {
    memset(pair.b.buffer, kOld, size);
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, size, kData)) return false;
  }
  return true;
}

// The same, and each message has other bytes than the one before.
bool share_and_poll(Pair& pair) {
  for (uint64_t id = 1; id <= 3; id++) {
    if (post_receive(pair.b, id, 0, size) != 0) return false;
  }
  for (uint64_t id = 1; id <= 3; id++) {
    const char value = static_cast<char>(10 + id);
    memset(pair.a.buffer, value, size);
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1) || !ends(pair.b.cq, id)) return false;
    if (!all_are(pair.b.buffer, size, value)) return false;
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
  memset(pair.a.buffer + 2 * size, 0, size);
  if (!read(pair, 1, 0)) return false;
  if (post_send(pair.b, 2, IBV_WR_RDMA_WRITE, 0, size, &pair.a, 2 * size, IBV_SEND_SIGNALED | IBV_SEND_FENCE) != 0)
    return false;
  return ends(pair.b.cq, 2) && all_are(pair.a.buffer + 2 * size, size, kData);
}

bool stop(Pair& pair, ibv_qp_state state) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  return ibv_modify_qp(pair.b.qp, &attr, IBV_QP_STATE) == 0;
}

// The receive is the program's again without a poll.
bool end_queue_pair(Pair& pair, const char* how) {
  if (!receive(pair, 2, 0) || post_receive(pair.b, 3, size, size) != 0) return false;
  if (strcmp(how, "error") == 0 && !stop(pair, IBV_QPS_ERR)) return false;
  if (strcmp(how, "reset") == 0 && !stop(pair, IBV_QPS_RESET)) return false;
  if (strcmp(how, "deregister") == 0 && (ibv_dereg_mr(pair.b.mr) != 0 || (pair.b.mr = nullptr, false))) return false;
  if (strcmp(how, "destroy") == 0) {
    if (ibv_destroy_qp(pair.b.qp) != 0) return false;
    pair.b.qp = nullptr;
  }
  const bool is_there = all_are(pair.b.buffer, size, kData) && all_are(pair.b.buffer + size, size, kOld);
  memset(pair.b.buffer, 0, 2 * size_t{size});
  return is_there;
}

// Sends these bytes with a pair of its own.
bool sends_by_own_pair(char* bytes) {
  const std::unique_ptr<Pair> own(make_pair({}));
  ibv_mr* mr = own == nullptr ? nullptr : ibv_reg_mr(own->pd, bytes, size, int{IBV_ACCESS_LOCAL_WRITE});
  if (mr == nullptr || post_receive(own->b, 2, 0, size) != 0) return false;
  memset(bytes, kOld, size);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(bytes), size, mr->lkey};
  ibv_send_wr request = signaled(IBV_WR_SEND, 1, segment), *bad = nullptr;
  const bool is_sent = ibv_post_send(own->a.qp, &request, &bad) == 0 && ends(own->a.cq, 1) && ends(own->b.cq, 2);
  return ibv_dereg_mr(mr) == 0 && is_sent && all_are(own->b.buffer, size, kOld);
}

// A child of fork() uses its copy of the memory into which its parent's receive has brought bytes.
bool fork_child(Pair& pair) {
  if (!receive(pair, 2, 0)) return false;
  const pid_t child = fork();
  if (child == 0) _exit(sends_by_own_pair(pair.b.buffer) ? 0 : 1);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return false;
  return ends(pair.b.cq, 2) && all_are(pair.b.buffer, size, kData);
}

// The receives of a shared queue, with one id.
bool receive_shared(Pair& pair) {
  for (size_t i = 0; i < 4; i++) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer + i * size), size, pair.b.mr->lkey};
    ibv_recv_wr request = {}, *bad = nullptr;
    request.sg_list = &segment;
    request.num_sge = 1;
    if (ibv_post_srq_recv(pair.srq, &request, &bad) != 0) return false;
  }
  for (size_t i = 1; i <= 4; i++) {
    if (post_send(pair.a, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.a.cq, 1)) return false;
    const bool was_hidden = is_closed() || all_are(pair.b.buffer + (i - 1) * size, size, kPattern);
    if (!was_hidden || !ends(pair.b.cq, 0) || !all_are(pair.b.buffer, i * size, kData)) return false;
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
    ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.a.buffer + id * size), size, pair.a.mr->lkey};
    ibv_recv_wr request = {}, *bad = nullptr;
    request.wr_id = id;
    request.sg_list = &segment;
    request.num_sge = 1;
    if (ibv_post_recv(qp, &request, &bad) != 0) return false;
    if (post_send(pair.b, 1, IBV_WR_SEND, 0, size) != 0 || !ends(pair.b.cq, 1)) return false;
  }
  ibv_poll_cq_attr poll = {};
  bool good = is_closed() || all_are(pair.a.buffer, 2 * size_t{size}, kPattern);
  good = good && ibv_start_poll(cq, &poll) == 0 && all_are(pair.a.buffer, size, kOld);
  good = good && (is_closed() || pair.a.buffer[size] == kPattern) && ibv_next_poll(cq) == 0;
  good = good && all_are(pair.a.buffer + size, size, kOld);
  ibv_end_poll(cq);
  return ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0 && good;
}

struct Case {
  const char* name;
  bool (*run)(Pair&);
};

constexpr Case kCases[] = {
    {"seen-receive", see_receive},
    {"seen-read", [](Pair& pair) { return see_read(pair, false); }},
    {"seen-twice", [](Pair& pair) { return see_read(pair, true); }},
    {"written-closed", write_into_closed},
    {"given-to-system", give_to_system},
    {"freed", free_with_read},
    {"reallocated", reallocate_with_read},
    {"moved", move_with_read},
    {"protected", protect_with_read},
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
  const char* name = count > 1 ? words[1] : "";
  if (count > 2) size = static_cast<uint32_t>(strtoul(words[2], nullptr, 10));
  if (is_closed() && sysconf(_SC_PAGESIZE) != 4096) {
    puts("SKIP: the pages of this machine are larger than the test's buffers");
    return 77;
  }
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
