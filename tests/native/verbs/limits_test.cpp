// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The limits that ibv_query_device() reports are those that the device keeps. Runs under dapple-run.
#include <errno.h>
#include <string.h>

#include <initializer_list>
#include <vector>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

ibv_context* context = nullptr;
ibv_pd* pd = nullptr;
ibv_cq* cq = nullptr;
ibv_device_attr limits = {};
char memory[4096];

// A kind of objects. The other objects of the test count, too.
struct Kind {
  const char* name;
  int limit;
  int others;
  void* (*make)();
  int (*destroy)(void*);
};

void* make_pd() {
  return ibv_alloc_pd(context);
}
void* make_mr() {
  return ibv_reg_mr(pd, memory, sizeof memory, int{IBV_ACCESS_LOCAL_WRITE});
}
void* make_mw() {
  return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}
void* make_cq() {
  return ibv_create_cq(context, 1, nullptr, nullptr, 0);
}
void* make_srq() {
  ibv_srq_init_attr attr = {nullptr, {1, 1, 0}};
  return ibv_create_srq(pd, &attr);
}
void* make_ah() {
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  // It asks dappled, and there are a million of these.
  static const uint8_t index = index_of_loopback(context);
  attr.grh.sgid_index = index;
  ibv_query_gid(context, 1, attr.grh.sgid_index, &attr.grh.dgid);
  return ibv_create_ah(pd, &attr);
}
void* make_qp() {
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {1, 1, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  return ibv_create_qp(pd, &attr);
}

int open_device(void**) {
  context = open_loopback();
  if (context == nullptr || ibv_query_device(context, &limits) != 0) return -1;
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  return pd != nullptr && cq != nullptr ? 0 : -1;
}

int close_device(void**) {
  return ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0 ? 0 : -1;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"PD", limits.max_pd, 1, make_pd, [](void* made) { return ibv_dealloc_pd(static_cast<ibv_pd*>(made)); }},
      {"MR", limits.max_mr, 0, make_mr, [](void* made) { return ibv_dereg_mr(static_cast<ibv_mr*>(made)); }},
      {"MW", limits.max_mw, 0, make_mw, [](void* made) { return ibv_dealloc_mw(static_cast<ibv_mw*>(made)); }},
      {"CQ", limits.max_cq, 1, make_cq, [](void* made) { return ibv_destroy_cq(static_cast<ibv_cq*>(made)); }},
      {"SRQ", limits.max_srq, 0, make_srq, [](void* made) { return ibv_destroy_srq(static_cast<ibv_srq*>(made)); }},
      {"AH", limits.max_ah, 0, make_ah, [](void* made) { return ibv_destroy_ah(static_cast<ibv_ah*>(made)); }},
      {"QP", limits.max_qp, 0, make_qp, [](void* made) { return ibv_destroy_qp(static_cast<ibv_qp*>(made)); }},
  };
  return all;
}

bool refuses(const Kind& kind) {
  errno = 0;
  return kind.make() == nullptr && errno == ENOMEM;
}

// Makes as many as possible. Returns null, or what went wrong. No assert may leave a function with objects.
const char* reach_the_limit(const Kind& kind) {
  std::vector<void*> made;
  for (void* one = kind.make(); one != nullptr; one = kind.make()) made.push_back(one);
  const char* wrong = nullptr;
  if (made.size() != static_cast<size_t>(kind.limit - kind.others)) wrong = "the number at the limit";
  if (wrong == nullptr && !refuses(kind)) wrong = "no ENOMEM at the limit";
  // One that goes makes room for one.
  if (kind.destroy(made.back()) != 0) wrong = "destroying one";
  made.back() = kind.make();
  if (made.back() == nullptr) {
    wrong = "no room after one is destroyed";
    made.pop_back();
  } else if (wrong == nullptr && !refuses(kind)) {
    wrong = "no ENOMEM after that";
  }
  for (void* one : made) {
    if (kind.destroy(one) != 0) wrong = "destroying all";
  }
  if (void* one = kind.make(); one == nullptr || kind.destroy(one) != 0) wrong = "making one afterwards";
  if (wrong != nullptr) print_message("%s: %s, %zu instead of %d\n", kind.name, wrong, made.size(), kind.limit);
  return wrong;
}

void limits__of_each_kind__are_kept(void**) {
  for (const Kind& kind : kinds()) assert_null(reach_the_limit(kind));
}

// Regions and windows have one table of keys.
void limits__regions_and_windows_at_once(void**) {
  static std::vector<ibv_mr*> regions;
  for (int i = 0; i < limits.max_mr; ++i) regions.push_back(static_cast<ibv_mr*>(make_mr()));
  assert_non_null(regions.back());
  // The search for the last free keys takes long, so windows take half of theirs.
  static std::vector<ibv_mw*> windows;
  for (int i = 0; i < limits.max_mw / 2; ++i) windows.push_back(static_cast<ibv_mw*>(make_mw()));
  assert_non_null(windows.back());
  assert_null(make_mr());
  for (ibv_mw* window : windows) assert_int_equal(ibv_dealloc_mw(window), 0);
  for (ibv_mr* region : regions) assert_int_equal(ibv_dereg_mr(region), 0);
}

// A device that is opened twice has its limits once. What a program leaves in a device that it closes counts no more.
void limits__second_context__shares_them(void**) {
  ibv_context* first = context;
  const Kind& kind = kinds()[0];
  static std::vector<void*> made;
  for (int i = kind.others; i < kind.limit; ++i) made.push_back(kind.make());
  assert_non_null(made.back());
  context = open_loopback();
  assert_non_null(context);
  assert_true(refuses(kind));
  assert_int_equal(kind.destroy(made.back()), 0);
  made.pop_back();
  static void* left = nullptr;  // in the second context; a sanitizer sees it as used
  left = kind.make();
  assert_non_null(left);
  assert_true(refuses(kind));
  assert_int_equal(ibv_close_device(context), 0);
  context = first;
  made.push_back(kind.make());
  assert_non_null(made.back());
  assert_true(refuses(kind));
  for (void* one : made) assert_int_equal(kind.destroy(one), 0);
}

void sizes__beyond_the_limits__are_refused(void**) {
  assert_null(ibv_create_cq(context, limits.max_cqe + 1, nullptr, nullptr, 0));
  assert_int_equal(errno, EINVAL);
  ibv_cq* largest = ibv_create_cq(context, limits.max_cqe, nullptr, nullptr, 0);
  assert_non_null(largest);
  assert_int_equal(largest->cqe, limits.max_cqe);
  assert_int_equal(ibv_resize_cq(largest, limits.max_cqe + 1), EINVAL);
  assert_int_equal(ibv_destroy_cq(largest), 0);

  ibv_srq_init_attr srq = {};
  const auto wr = static_cast<uint32_t>(limits.max_srq_wr), sge = static_cast<uint32_t>(limits.max_srq_sge);
  for (const ibv_srq_attr& attr : {ibv_srq_attr{wr + 1, 1, 0}, ibv_srq_attr{1, sge + 1, 0}}) {
    srq.attr = attr;
    assert_null(ibv_create_srq(pd, &srq));
    assert_int_equal(errno, EINVAL);
  }
  srq.attr = {wr, sge, 0};
  ibv_srq* queue = ibv_create_srq(pd, &srq);
  assert_non_null(queue);
  assert_int_equal(srq.attr.max_wr, limits.max_srq_wr);
  ibv_srq_attr larger = {wr + 1, 0, 0};
  assert_int_equal(ibv_modify_srq(queue, &larger, IBV_SRQ_MAX_WR), EINVAL);
  assert_int_equal(ibv_destroy_srq(queue), 0);

  const auto qp_wr = static_cast<uint32_t>(limits.max_qp_wr), qp_sge = static_cast<uint32_t>(limits.max_sge);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  for (const ibv_qp_cap& cap : {ibv_qp_cap{qp_wr + 1, 1, 1, 1, 0}, ibv_qp_cap{1, qp_wr + 1, 1, 1, 0},
                                ibv_qp_cap{1, 1, qp_sge + 1, 1, 0}, ibv_qp_cap{1, 1, 1, qp_sge + 1, 0}}) {
    init.cap = cap;
    assert_null(ibv_create_qp(pd, &init));
    assert_int_equal(errno, EINVAL);
  }
  init.cap = {qp_wr, qp_wr, qp_sge, qp_sge, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  assert_non_null(qp);
  assert_int_equal(init.cap.max_send_wr, qp_wr);
  assert_int_equal(init.cap.max_recv_wr, qp_wr);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(limits__of_each_kind__are_kept, open_device, close_device),
      cmocka_unit_test_setup_teardown(limits__regions_and_windows_at_once, open_device, close_device),
      cmocka_unit_test_setup_teardown(limits__second_context__shares_them, open_device, close_device),
      cmocka_unit_test_setup_teardown(sizes__beyond_the_limits__are_refused, open_device, close_device),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
