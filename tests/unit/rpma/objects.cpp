// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/rpma/objects.hpp"

void Objects::make() {
  uint8_t descriptor[22];
  assert_int_equal(rpma_peer_new(fake::context(), &peer), 0);
  assert_int_equal(rpma_mr_reg(peer, memory, sizeof memory, 0xff, &mr), 0);
  assert_int_equal(rpma_mr_get_descriptor(mr, descriptor), 0);
  take_remote(descriptor, sizeof descriptor);
  assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
  assert_int_equal(rpma_srq_cfg_new(&srq_cfg), 0);
  assert_int_equal(rpma_peer_cfg_new(&peer_cfg), 0);
  assert_int_equal(rpma_srq_new(peer, srq_cfg, &srq), 0);
  assert_int_equal(rpma_ep_listen(peer, "here", "1", &ep), 0);
}

void Objects::take_remote(const void* descriptor, size_t size) {
  assert_int_equal(rpma_mr_remote_delete(&remote), 0);
  assert_int_equal(rpma_mr_remote_from_descriptor(descriptor, size, &remote), 0);
}

void Objects::connect(const rpma_conn_cfg* with) {
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  assert_int_equal(rpma_conn_req_new(peer, "there", "1", with, &req), 0);
  assert_int_equal(rpma_conn_req_connect(&req, nullptr, &conn), 0);
  fake::state.events.push_back({RDMA_CM_EVENT_ESTABLISHED, ""});
  assert_int_equal(rpma_conn_next_event(conn, &event), 0);
  assert_int_equal(event, RPMA_CONN_ESTABLISHED);
  assert_int_equal(rpma_conn_get_cq(conn, &cq), 0);
}

void Objects::free() {
  rpma_conn_req_delete(&req);
  rpma_conn_delete(&conn);
  rpma_ep_shutdown(&ep);
  rpma_srq_delete(&srq);
  rpma_mr_remote_delete(&remote);
  rpma_mr_dereg(&mr);
  rpma_conn_cfg_delete(&cfg);
  rpma_srq_cfg_delete(&srq_cfg);
  rpma_peer_cfg_delete(&peer_cfg);
  rpma_peer_delete(&peer);
}
