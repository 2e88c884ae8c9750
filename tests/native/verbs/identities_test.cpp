// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The device has the identity of DAPPLE_AS: it shows its values, keeps its limits, and fails as documented beyond them.
// Runs under dapple-run --as, with several identities.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "provider/face/identity/profile_file.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

// Limits that are reached one by one.
constexpr uint32_t kFew = 64;

face::Identity identity;
const soft::DeviceAttributes& expected = identity.attributes;
soft::DeviceInfo shown;

ibv_context* context = nullptr;
ibv_pd* pd = nullptr;
ibv_cq* cq = nullptr;
char memory[65536];

bool has(uint32_t feature) {
  return (expected.features & feature) != 0;
}

int open_device(void**) {
  context = open_loopback();
  if (context == nullptr) return -1;
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  return pd != nullptr && cq != nullptr ? 0 : -1;
}

int close_device(void**) {
  return ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0 ? 0 : -1;
}

void names__of_devices__are_those_of_the_identity(void**) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  assert_non_null(list);
  assert_true(count >= 1);
  for (int i = 0; i < count; ++i) {
    shown.index = soft::kFirstDeviceIndex + static_cast<uint32_t>(i);
    face::apply(identity, shown);
    assert_string_equal(ibv_get_device_name(list[i]), shown.name);
  }
  ibv_free_device_list(list);
}

void query_device__values__are_those_of_the_identity(void**) {
  ibv_device_attr attr;
  assert_int_equal(ibv_query_device(context, &attr), 0);
  assert_string_equal(attr.fw_ver, expected.fw_ver);
  assert_int_equal(attr.vendor_id, expected.vendor_id);
  assert_int_equal(attr.vendor_part_id, expected.vendor_part_id);
  assert_int_equal(attr.hw_ver, expected.hw_ver);
  assert_int_equal(attr.max_mr_size, expected.max_mr_size);
  assert_int_equal(attr.page_size_cap, expected.page_size_cap);
  assert_int_equal(attr.max_qp, expected.max_qp);
  assert_int_equal(attr.max_qp_wr, expected.max_qp_wr);
  assert_int_equal(attr.max_sge, std::min(expected.max_send_sge, expected.max_recv_sge));
  assert_int_equal(attr.max_sge_rd, expected.max_sge_rd);
  assert_int_equal(attr.max_cq, expected.max_cq);
  assert_int_equal(attr.max_cqe, expected.max_cqe);
  assert_int_equal(attr.max_mr, expected.max_mr);
  assert_int_equal(attr.max_pd, expected.max_pd);
  assert_int_equal(attr.max_mw, expected.max_mw);
  assert_int_equal(attr.max_ah, expected.max_ah);
  assert_int_equal(attr.max_srq, expected.max_srq);
  assert_int_equal(attr.max_srq_wr, expected.max_srq_wr);
  assert_int_equal(attr.max_srq_sge, expected.max_srq_sge);
  assert_int_equal(attr.max_qp_rd_atom, expected.max_qp_rd_atom);
  assert_int_equal(attr.max_qp_init_rd_atom, expected.max_qp_init_rd_atom);
  assert_int_equal(attr.max_res_rd_atom, expected.max_res_rd_atom);
  assert_int_equal(attr.atomic_cap, expected.atomics);
  assert_int_equal(attr.device_cap_flags & ~static_cast<uint32_t>(expected.device_cap_flags), 0);
  assert_int_equal(context->num_comp_vectors, expected.num_comp_vectors);
}

void query_device_ex__features__are_those_of_the_identity(void**) {
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(context, nullptr, &attr), 0);
  assert_int_equal(attr.completion_timestamp_mask != 0, has(soft::kFeatureTimeStamps));
  assert_int_equal(attr.hca_core_clock != 0, has(soft::kFeatureTimeStamps));
  assert_int_equal(attr.odp_caps.general_caps != 0, has(soft::kFeatureOnDemand));
  assert_int_equal(attr.max_dm_size != 0, has(soft::kFeatureDeviceMemory));
  if (!has(soft::kFeatureTimeStamps)) {
    ibv_cq_init_attr_ex init = {};
    init.cqe = 1;
    init.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    errno = 0;
    assert_null(ibv_create_cq_ex(context, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    ibv_values_ex values = {};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    assert_int_equal(ibv_query_rt_values_ex(context, &values), EOPNOTSUPP);
  }
  ibv_mr* mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  assert_int_equal(mr != nullptr, has(soft::kFeatureOnDemand));
  if (mr != nullptr) assert_int_equal(ibv_dereg_mr(mr), 0);
  ibv_alloc_dm_attr wanted = {};
  wanted.length = 64;
  ibv_dm* dm = ibv_alloc_dm(context, &wanted);
  assert_int_equal(dm != nullptr, has(soft::kFeatureDeviceMemory));
  if (dm != nullptr) assert_int_equal(ibv_free_dm(dm), 0);
}

void query_port__rate_and_message__are_those_of_the_identity(void**) {
  ibv_port_attr attr;
  assert_int_equal(ibv_query_port(context, 1, &attr), 0);
  assert_int_equal(attr.active_speed, expected.active_speed);
  assert_int_equal(attr.active_width, expected.active_width);
  assert_int_equal(attr.max_msg_sz, expected.max_msg_sz);
}

ibv_qp* make_qp(const ibv_qp_cap& cap, ibv_qp_init_attr& init) {
  init = {};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = cap;
  errno = 0;
  return ibv_create_qp(pd, &init);
}

void create_qp__beyond_each_limit__einval(void**) {
  const uint32_t wr = expected.max_qp_wr, send = expected.max_send_sge, receive = expected.max_recv_sge;
  ibv_qp_init_attr init;
  for (const ibv_qp_cap& cap :
       {ibv_qp_cap{wr + 1, 1, 1, 1, 0}, ibv_qp_cap{1, wr + 1, 1, 1, 0}, ibv_qp_cap{1, 1, send + 1, 1, 0},
        ibv_qp_cap{1, 1, 1, receive + 1, 0}, ibv_qp_cap{1, 1, 1, 1, expected.max_inline + 1}}) {
    assert_null(make_qp(cap, init));
    assert_int_equal(errno, EINVAL);
  }
  ibv_qp* qp = make_qp({wr, wr, send, receive, expected.max_inline}, init);
  assert_non_null(qp);
  // Queues get more room than was asked for, but not more than the device has.
  assert_int_equal(init.cap.max_send_wr, wr);
  assert_int_equal(init.cap.max_recv_wr, wr);
  assert_int_equal(init.cap.max_inline_data, expected.max_inline);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

void create_cq__beyond_each_limit__einval(void**) {
  const auto most = static_cast<int>(expected.max_cqe), vectors = static_cast<int>(expected.num_comp_vectors);
  errno = 0;
  assert_null(ibv_create_cq(context, most + 1, nullptr, nullptr, 0));
  assert_int_equal(errno, EINVAL);
  errno = 0;
  assert_null(ibv_create_cq(context, 1, nullptr, nullptr, vectors));
  assert_int_equal(errno, EINVAL);
  ibv_cq* largest = ibv_create_cq(context, most, nullptr, nullptr, vectors - 1);
  assert_non_null(largest);
  assert_int_equal(largest->cqe, most);
  assert_int_equal(ibv_resize_cq(largest, 1), has(soft::kFeatureResizeCq) ? 0 : EOPNOTSUPP);
  if (has(soft::kFeatureResizeCq)) assert_int_equal(ibv_resize_cq(largest, most + 1), EINVAL);
  assert_int_equal(ibv_destroy_cq(largest), 0);
}

void reg_mr__beyond_the_limit__einval(void**) {
  if (expected.max_mr_size < SIZE_MAX) {
    errno = 0;
    assert_null(ibv_reg_mr(pd, memory, expected.max_mr_size + 1, int{IBV_ACCESS_LOCAL_WRITE}));
    assert_int_equal(errno, EINVAL);
  }
  ibv_mr* mr =
      ibv_reg_mr(pd, memory, std::min<uint64_t>(sizeof memory, expected.max_mr_size), int{IBV_ACCESS_LOCAL_WRITE});
  assert_non_null(mr);
  if (expected.max_mr_size < SIZE_MAX) {
    assert_int_not_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, expected.max_mr_size + 1, 0), 0);
    assert_int_equal(errno, EINVAL);
  }
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

void srq__missing_or_beyond_a_limit__refused(void**) {
  ibv_srq_init_attr init = {nullptr, {1, 1, 0}};
  errno = 0;
  if (!has(soft::kFeatureSrq)) {
    assert_null(ibv_create_srq(pd, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    return;
  }
  for (const ibv_srq_attr& attr :
       {ibv_srq_attr{expected.max_srq_wr + 1, 1, 0}, ibv_srq_attr{1, expected.max_srq_sge + 1, 0}}) {
    init.attr = attr;
    assert_null(ibv_create_srq(pd, &init));
    assert_int_equal(errno, EINVAL);
  }
  init.attr = {expected.max_srq_wr, expected.max_srq_sge, 0};
  ibv_srq* srq = ibv_create_srq(pd, &init);
  assert_non_null(srq);
  assert_int_equal(init.attr.max_wr, expected.max_srq_wr);
  ibv_srq_attr smaller = {1, 0, 0};
  const bool resizes = (expected.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0;
  assert_int_equal(ibv_modify_srq(srq, &smaller, IBV_SRQ_MAX_WR), resizes ? 0 : EINVAL);
  assert_int_equal(ibv_destroy_srq(srq), 0);
}

void memory_windows__missing__eopnotsupp(void**) {
  errno = 0;
  ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  assert_int_equal(window != nullptr, has(soft::kFeatureMemoryWindows));
  if (window == nullptr) assert_int_equal(errno, EOPNOTSUPP);
  if (window != nullptr) assert_int_equal(ibv_dealloc_mw(window), 0);
}

void extended_operations__missing__eopnotsupp(void**) {
  struct {
    uint64_t operation;
    bool possible;
  } const cases[] = {
      {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, expected.atomics != soft::kAtomicsNone},
      {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, expected.atomics != soft::kAtomicsNone},
      {IBV_QP_EX_WITH_BIND_MW, has(soft::kFeatureMemoryWindows)},
      {IBV_QP_EX_WITH_RDMA_READ, true},
  };
  for (const auto& each : cases) {
    ibv_qp_init_attr_ex init = {};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    init.pd = pd;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = each.operation;
    errno = 0;
    ibv_qp* qp = ibv_create_qp_ex(context, &init);
    assert_int_equal(qp != nullptr, each.possible);
    if (qp == nullptr) assert_int_equal(errno, EOPNOTSUPP);
    if (qp != nullptr) assert_int_equal(ibv_destroy_qp(qp), 0);
  }
}

void multicast__missing__eopnotsupp(void**) {
  if (has(soft::kFeatureMulticast)) return;
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_UD;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  assert_non_null(qp);
  ibv_gid group = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 2, 3}};
  assert_int_equal(ibv_attach_mcast(qp, &group, 0), EOPNOTSUPP);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

// A pair that the device allows.
PairOptions fitting() {
  PairOptions options;
  options.pieces = std::min({options.pieces, expected.max_send_sge, expected.max_recv_sge});
  options.inline_bytes = std::min(options.inline_bytes, expected.max_inline);
  return options;
}

void modify_qp__more_reads_than_the_limit__einval(void**) {
  assert_true(begin(fitting()));
  ibv_qp_attr attr = {};
  if (expected.max_qp_rd_atom < 255) {
    attr.max_dest_rd_atomic = static_cast<uint8_t>(expected.max_qp_rd_atom + 1);
    assert_int_equal(ibv_modify_qp(pair->a.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
  }
  attr.qp_state = IBV_QPS_SQD;
  assert_int_equal(ibv_modify_qp(pair->a.qp, &attr, IBV_QP_STATE), 0);
  attr.max_rd_atomic = static_cast<uint8_t>(expected.max_qp_init_rd_atom + 1);
  assert_int_equal(ibv_modify_qp(pair->a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
}

// The memory of the longer message is not touched.
int post_length(ibv_wr_opcode opcode, uint32_t length) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), length, pair->a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 5;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = pair->b.mr->rkey;
  return ibv_post_send(pair->a.qp, &request, &bad);
}

void post_send__longer_than_a_message__fails_as_the_device_does(void**) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    assert_true(begin(fitting()));
    if (expected.max_msg_sz <= kBufferSize) {
      assert_int_equal(post_receive(pair->b, 1, 0, expected.max_msg_sz), 0);
      assert_int_equal(post_length(opcode, expected.max_msg_sz), 0);
      expect(pair->a.cq, 5, IBV_WC_SUCCESS,
             opcode == IBV_WR_SEND        ? IBV_WC_SEND
             : opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                          : IBV_WC_RDMA_WRITE);
    }
    if (expected.too_long == soft::kTooLongRefused) {
      assert_int_equal(post_length(opcode, expected.max_msg_sz + 1), EINVAL);
    } else {
      assert_int_equal(post_length(opcode, expected.max_msg_sz + 1), 0);
      expect(pair->a.cq, 5, IBV_WC_LOC_LEN_ERR, IBV_WC_SEND);
    }
    finish(nullptr);
  }
}

void post_send__more_inline_bytes_than_the_limit__einval(void**) {
  assert_true(begin(fitting()));
  assert_int_equal(post_receive(pair->b, 1, 0, 4096), 0);
  const unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  assert_int_equal(post_send(pair->a, 2, IBV_WR_SEND, 0, expected.max_inline + 1, nullptr, 0, flags), EINVAL);
}

void post_send__missing_atomics__einval(void**) {
  assert_true(begin(fitting()));
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 8, pair->a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 9;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.atomic.rkey = pair->b.mr->rkey;
  request.wr.atomic.compare_add = 1;
  const bool missing = expected.atomics == soft::kAtomicsNone;
  assert_int_equal(ibv_post_send(pair->a.qp, &request, &bad), missing ? EINVAL : 0);
  if (!missing) expect(pair->a.cq, 9, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD);
}

// Makes objects until the limit. `others` are there already.
template <typename Object>
void reach(uint32_t limit, uint32_t others, Object* (*make)(), int (*destroy)(Object*)) {
  if (limit > kFew) return;
  static std::vector<Object*> made;
  made.clear();
  for (uint32_t i = others; i < limit; ++i) made.push_back(make());
  errno = 0;
  Object* one_more = make();
  const int error = errno;
  bool all = true;
  for (Object* each : made) all = each != nullptr && destroy(each) == 0 && all;
  assert_null(one_more);
  assert_int_equal(error, ENOMEM);
  assert_true(all);
}

void objects__beyond_the_limit__enomem(void**) {
  reach<ibv_pd>(
      expected.max_pd, 1, [] { return ibv_alloc_pd(context); }, ibv_dealloc_pd);
  reach<ibv_cq>(
      expected.max_cq, 1, [] { return ibv_create_cq(context, 1, nullptr, nullptr, 0); }, ibv_destroy_cq);
  reach<ibv_mr>(
      expected.max_mr, 0, [] { return ibv_reg_mr(pd, memory, 1, 0); }, ibv_dereg_mr);
  const auto make = [] {
    ibv_qp_init_attr init;
    return make_qp({1, 1, 1, 1, 0}, init);
  };
  reach<ibv_qp>(expected.max_qp, 0, make, ibv_destroy_qp);
  if (has(soft::kFeatureMemoryWindows))
    reach<ibv_mw>(
        expected.max_mw, 0, [] { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); }, ibv_dealloc_mw);
  const auto make_srq = [] {
    ibv_srq_init_attr init = {nullptr, {1, 1, 0}};
    return ibv_create_srq(pd, &init);
  };
  if (has(soft::kFeatureSrq)) reach<ibv_srq>(expected.max_srq, 0, make_srq, ibv_destroy_srq);
  const auto make_ah = [] {
    ibv_ah_attr attr = {};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.sgid_index = index_of_loopback(context);
    ibv_query_gid(context, 1, attr.grh.sgid_index, &attr.grh.dgid);
    return ibv_create_ah(pd, &attr);
  };
  reach<ibv_ah>(expected.max_ah, 0, make_ah, ibv_destroy_ah);
}

// The next dappled is told the identity before it tells devices.
void identity__after_dappled_was_killed__is_the_same(void**) {
  Watcher watcher;
  assert_true(watcher.kill_dappled());
  names__of_devices__are_those_of_the_identity(nullptr);
  query_port__rate_and_message__are_those_of_the_identity(nullptr);
}

}  // namespace

int main() {
  need_new_namespace();
  const char* const spec = getenv("DAPPLE_AS");
  soft::Problem problem;
  if (spec == nullptr || !face::read_identity_from_files(spec, identity, problem)) {
    fprintf(stderr, "DAPPLE_AS: %s\n", problem.line);
    return 1;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(names__of_devices__are_those_of_the_identity),
      cmocka_unit_test_setup_teardown(query_device__values__are_those_of_the_identity, open_device, close_device),
      cmocka_unit_test_setup_teardown(query_device_ex__features__are_those_of_the_identity, open_device, close_device),
      cmocka_unit_test_setup_teardown(query_port__rate_and_message__are_those_of_the_identity, open_device,
                                      close_device),
      cmocka_unit_test_setup_teardown(create_qp__beyond_each_limit__einval, open_device, close_device),
      cmocka_unit_test_setup_teardown(create_cq__beyond_each_limit__einval, open_device, close_device),
      cmocka_unit_test_setup_teardown(reg_mr__beyond_the_limit__einval, open_device, close_device),
      cmocka_unit_test_setup_teardown(srq__missing_or_beyond_a_limit__refused, open_device, close_device),
      cmocka_unit_test_setup_teardown(memory_windows__missing__eopnotsupp, open_device, close_device),
      cmocka_unit_test_setup_teardown(extended_operations__missing__eopnotsupp, open_device, close_device),
      cmocka_unit_test_setup_teardown(multicast__missing__eopnotsupp, open_device, close_device),
      cmocka_unit_test_setup_teardown(objects__beyond_the_limit__enomem, open_device, close_device),
      cmocka_unit_test_teardown(modify_qp__more_reads_than_the_limit__einval, finish),
      cmocka_unit_test_teardown(post_send__longer_than_a_message__fails_as_the_device_does, finish),
      cmocka_unit_test_teardown(post_send__more_inline_bytes_than_the_limit__einval, finish),
      cmocka_unit_test_teardown(post_send__missing_atomics__einval, finish),
      cmocka_unit_test_setup_teardown(identity__after_dappled_was_killed__is_the_same, open_device, close_device),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
