// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/litmus/node.hpp"

#include <sched.h>

#include <algorithm>

#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/pair.hpp"

namespace dapple::litmus {
namespace {

using tests::failed;
using tests::kPatience;
using tests::now;

constexpr uint32_t kDepth = 16;
// Of the waits between two steps: longer than those of the device.
constexpr unsigned kLongest = 250;  // microseconds

// Behind the words that programs have.
constexpr uint8_t scratch_of(int node) {
  return static_cast<uint8_t>(kWords + node);
}

}  // namespace

bool Node::open() {
  ibv_context* context = tests::open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr) return false;
  mr_ = ibv_reg_mr(pd, stage_.words, sizeof stage_.words, static_cast<int>(tests::kPeerRights));
  if (mr_ == nullptr) return false;
  for (int pair = 0; pair < kPairs; pair++) {
    cqs_[pair] = ibv_create_cq(context, 2 * kDepth, nullptr, nullptr, 0);
    if (cqs_[pair] == nullptr) return false;
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cqs_[pair];
    attr.cap = {kDepth, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    qps_[pair] = ibv_create_qp(pd, &attr);
    if (qps_[pair] == nullptr) return false;
    stage_.qpn[number_][pair] = qps_[pair]->qp_num;
  }
  for (int pair = 0; pair < kPairs; pair++) {
    const std::atomic<uint32_t>& peer = stage_.qpn[1 - number_][pair];
    if (!tests::await(kPatience, [&] { return peer != 0; }) || !tests::connect(qps_[pair], peer, 20)) return false;
  }
  stage_.rkey[number_] = mr_->rkey;
  return meet();
}

bool Node::meet() {
  const uint32_t mine = ++meetings_;
  stage_.arrived[number_] = mine;
  for (const double end = now() + kPatience; stage_.arrived[1 - number_] < mine;) {
    if (stage_.is_over || now() > end) return false;
    sched_yield();
  }
  return true;
}

// Half of the steps follow at once.
void Node::wait_a_little() {
  const unsigned drawn = static_cast<unsigned>(random_() % (2 * kLongest));
  if (drawn > kLongest) return;
  for (const double end = now() + drawn * 1e-6; now() < end;) sched_yield();
}

bool Node::post(const Step& step) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(&stage_.words[step.local]), sizeof(uint64_t), mr_->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  if (step.fenced) request.send_flags |= IBV_SEND_FENCE;
  const uint64_t address = reinterpret_cast<uintptr_t>(&stage_.words[step.remote]);
  const uint32_t rkey = stage_.rkey[1 - number_];
  if (step.kind == Kind::kAdd) {
    request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic = {address, step.value, 0, rkey};
  } else {
    request.opcode = step.kind == Kind::kPut ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    request.wr.rdma = {address, rkey};
  }
  if (ibv_post_send(qps_[step.pair], &request, &bad) != 0) {
    failed("a request cannot be posted");
    return false;
  }
  unpolled_[step.pair]++;
  return true;
}

bool Node::poll(int pair) {
  for (const double end = now() + kPatience; now() < end;) {
    ibv_wc completion = {};
    const int got = ibv_poll_cq(cqs_[pair], 1, &completion);
    if (got == 0) continue;
    if (got < 0 || completion.status != IBV_WC_SUCCESS) {
      failed("a completion", ibv_wc_status_str(completion.status));
      return false;
    }
    unpolled_[pair]--;
    return true;
  }
  failed("no completion");
  return false;
}

bool Node::await_change(int word) {
  for (const double end = now() + kPatience; stage_.words[word].value == first_value(word);) {
    if (now() < end) continue;
    failed("a word that never changes");
    return false;
  }
  return true;
}

bool Node::execute(const Step& step) {
  switch (step.kind) {
    case Kind::kStore:
      stage_.words[step.local].value.store(step.value);
      return true;
    case Kind::kLoad:
      stage_.loaded[number_].loads[loads_++] = static_cast<uint8_t>(stage_.words[step.local].value.load());
      return true;
    case Kind::kPoll:
      return poll(step.pair);
    case Kind::kAwait:
      return await_change(step.local);
    default:
      return post(step);
  }
}

bool Node::settle(const std::vector<Step>& steps) {
  for (int pair = 0; pair < kPairs; pair++) {
    while (unpolled_[pair] > 0) {
      if (!poll(pair)) return false;
    }
    const bool has_written = std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
      return (step.kind == Kind::kPut || step.kind == Kind::kAdd) && step.pair == pair;
    });
    // A Read sees all Writes before it.
    const Step read = {Kind::kGet, scratch_of(number_), scratch_of(1 - number_), 0, static_cast<uint8_t>(pair)};
    if (has_written && (!post(read) || !poll(pair))) return false;
  }
  return true;
}

bool Node::run(const Program& program, Outcome& outcome) {
  loads_ = program.loads_before(number_);
  const int first = number_ * kWordsOfNode;
  for (int word = first; word < first + kWordsOfNode; word++) stage_.words[word].value = first_value(word);
  if (!meet()) return false;
  for (const Step& step : program.threads[number_]) {
    wait_a_little();
    if (!execute(step)) return false;
  }
  if (!settle(program.threads[number_]) || !meet()) return false;
  for (int word = 0; word < kWords; word++) {
    outcome.words[word] = static_cast<uint8_t>(stage_.words[word].value.load());
  }
  for (int node = 0; node < kNodes; node++) {
    const size_t end = program.loads_before(node + 1);
    for (size_t i = program.loads_before(node); i < end; i++) outcome.loads[i] = stage_.loaded[node].loads[i];
  }
  return meet();
}

}  // namespace dapple::litmus
