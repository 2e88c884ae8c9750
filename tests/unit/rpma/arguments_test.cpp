// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Each function of librpma with each wrong argument, and with objects in a wrong state: it must return the documented
// error, and must not have called, made or written anything. With DAPPLE_EXPLAIN=1 it must have reported the error.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "tests/unit/rpma/objects.hpp"

namespace {

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;

struct Row {
  const char* function;
  int expected;
  std::function<int()> call;
};

Objects o;

// The row contains the call as a program would write it.
#define WRONG(function, error, ...)                                 \
  Row {                                                             \
#function, RPMA_E_##error, [] { return function(__VA_ARGS__); } \
  }

rpma_peer* const no_peer = nullptr;
bool flag;
int number;
uint32_t size32;
size_t size;
void* pointer;
char bytes[64];
rpma_conn_event event;
rpma_log_level level;
ibv_wc wc;
rpma_conn_private_data data;
rpma_conn_private_data no_bytes = {bytes, 0};
rpma_conn_private_data no_pointer = {nullptr, 4};
rpma_peer* new_peer;
rpma_peer_cfg* new_peer_cfg;
rpma_mr_local* new_mr;
rpma_mr_remote* new_remote;
rpma_srq* new_srq;
rpma_ep* new_ep;
rpma_conn_req* new_req;
rpma_conn_req* no_req;
rpma_conn* new_conn;
rpma_cq* new_cq;
ibv_context* new_context;
constexpr rpma_feature kFeature = RPMA_FEATURE_NATIVE_ATOMIC_WRITE;
constexpr size_t kHuge = size_t{UINT32_MAX} + 1;

// A failed connect destroys the request, so each call gets a new one.
int connect_wrongly(const rpma_conn_private_data* with, rpma_conn** out) {
  rpma_conn_req* req = nullptr;
  if (rpma_conn_req_new(o.peer, "there", "1", nullptr, &req)) return 0;
  const int result = rpma_conn_req_connect(&req, with, out);
  return req ? 0 : result;
}

// A getter or setter of one value, with each of its pointers NULL.
#define GET(function, object, out) WRONG(function, INVAL, nullptr, out), WRONG(function, INVAL, object, nullptr)
#define SET(function, value) WRONG(function, INVAL, nullptr, value)

const Row kRows[] = {
    WRONG(rpma_utils_get_ibv_context, INVAL, nullptr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &new_context),
    WRONG(rpma_utils_get_ibv_context, INVAL, "here", RPMA_UTIL_IBV_CONTEXT_LOCAL, nullptr),
    WRONG(rpma_utils_get_ibv_context, INVAL, "here", static_cast<rpma_util_ibv_context_type>(2), &new_context),
    WRONG(rpma_utils_ibv_context_is_odp_capable, INVAL, nullptr, &number),
    WRONG(rpma_utils_ibv_context_is_odp_capable, INVAL, fake::context(), nullptr),
    SET(rpma_peer_cfg_set_direct_write_to_pmem, true),
    GET(rpma_peer_cfg_get_direct_write_to_pmem, o.peer_cfg, &flag),
    GET(rpma_peer_cfg_get_descriptor, o.peer_cfg, bytes),
    GET(rpma_peer_cfg_get_descriptor_size, o.peer_cfg, &size),
    WRONG(rpma_peer_cfg_new, INVAL, nullptr),
    WRONG(rpma_peer_cfg_delete, INVAL, nullptr),
    WRONG(rpma_peer_cfg_from_descriptor, INVAL, nullptr, 1, &new_peer_cfg),
    WRONG(rpma_peer_cfg_from_descriptor, INVAL, bytes, 0, &new_peer_cfg),
    WRONG(rpma_peer_cfg_from_descriptor, INVAL, bytes, 1, nullptr),
    GET(rpma_peer_cfg_set_from_platform, o.peer_cfg, o.peer),
    WRONG(rpma_peer_has_feature, INVAL, nullptr, kFeature, &flag, nullptr),
    WRONG(rpma_peer_has_feature, INVAL, o.peer, kFeature, nullptr, nullptr),
    WRONG(rpma_peer_has_feature, INVAL, o.peer, static_cast<rpma_feature>(4), &flag, nullptr),
    WRONG(rpma_peer_has_feature, INVAL, o.peer, static_cast<rpma_feature>(-1), &flag, nullptr),
    WRONG(rpma_conn_has_feature, INVAL, nullptr, o.remote, kFeature, &flag, nullptr),
    WRONG(rpma_conn_has_feature, INVAL, o.conn, o.remote, kFeature, nullptr, nullptr),
    WRONG(rpma_conn_has_feature, INVAL, o.conn, o.remote, static_cast<rpma_feature>(4), &flag, nullptr),
    WRONG(rpma_conn_has_feature, INVAL, o.conn, nullptr, static_cast<rpma_feature>(-1), &flag, nullptr),
    WRONG(rpma_peer_new, INVAL, nullptr, &new_peer),
    WRONG(rpma_peer_new, INVAL, fake::context(), nullptr),
    WRONG(rpma_peer_delete, INVAL, nullptr),
    WRONG(rpma_mr_reg, INVAL, nullptr, bytes, 8, 1, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, nullptr, 8, 1, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, bytes, 0, 1, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, bytes, 8, 0, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, bytes, 8, 0x100, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, bytes, 8, -1, &new_mr),
    WRONG(rpma_mr_reg, INVAL, o.peer, bytes, 8, 1, nullptr),
    WRONG(rpma_mr_dereg, INVAL, nullptr),
    GET(rpma_mr_get_descriptor, o.mr, bytes),
    GET(rpma_mr_get_descriptor_size, o.mr, &size),
    GET(rpma_mr_get_ptr, o.mr, &pointer),
    GET(rpma_mr_get_size, o.mr, &size),
    GET(rpma_mr_remote_get_size, o.remote, &size),
    GET(rpma_mr_remote_get_flush_type, o.remote, &number),
    WRONG(rpma_mr_remote_from_descriptor, INVAL, nullptr, 21, &new_remote),
    WRONG(rpma_mr_remote_from_descriptor, INVAL, bytes, 21, nullptr),
    WRONG(rpma_mr_remote_from_descriptor, INVAL, bytes, 20, &new_remote),
    WRONG(rpma_mr_remote_from_descriptor, INVAL, bytes, 0, &new_remote),
    WRONG(rpma_mr_remote_from_descriptor, INVAL, bytes, 21, &new_remote),  // its usage is 0
    WRONG(rpma_mr_remote_delete, INVAL, nullptr),
    WRONG(rpma_mr_advise, INVAL, nullptr, 0, 1, 0, 0),
    WRONG(rpma_mr_advise, INVAL, o.mr, sizeof o.memory + 1, 0, 0, 0),
    WRONG(rpma_mr_advise, INVAL, o.mr, 8, sizeof o.memory, 0, 0),
    WRONG(rpma_mr_advise, INVAL, o.mr, 8, SIZE_MAX, 0, 0),
    WRONG(rpma_srq_cfg_new, INVAL, nullptr),
    WRONG(rpma_srq_cfg_delete, INVAL, nullptr),
    SET(rpma_srq_cfg_set_rq_size, 1),
    SET(rpma_srq_cfg_set_rcq_size, 1),
    GET(rpma_srq_cfg_get_rq_size, o.srq_cfg, &size32),
    GET(rpma_srq_cfg_get_rcq_size, o.srq_cfg, &size32),
    WRONG(rpma_srq_new, INVAL, nullptr, o.srq_cfg, &new_srq),
    WRONG(rpma_srq_new, INVAL, o.peer, o.srq_cfg, nullptr),
    WRONG(rpma_srq_delete, INVAL, nullptr),
    WRONG(rpma_srq_recv, INVAL, nullptr, o.mr, 0, 8, nullptr),
    WRONG(rpma_srq_recv, INVAL, o.srq, nullptr, 1, 0, nullptr),
    WRONG(rpma_srq_recv, INVAL, o.srq, nullptr, 0, 1, nullptr),
    WRONG(rpma_srq_recv, INVAL, o.srq, o.mr, 0, kHuge, nullptr),
    GET(rpma_srq_get_rcq, o.srq, &new_cq),
    WRONG(rpma_conn_cfg_new, INVAL, nullptr),
    WRONG(rpma_conn_cfg_delete, INVAL, nullptr),
    SET(rpma_conn_cfg_set_timeout, 1),
    WRONG(rpma_conn_cfg_set_timeout, INVAL, o.cfg, -1),
    SET(rpma_conn_cfg_set_cq_size, 1),
    SET(rpma_conn_cfg_set_rcq_size, 1),
    SET(rpma_conn_cfg_set_sq_size, 1),
    SET(rpma_conn_cfg_set_rq_size, 1),
    SET(rpma_conn_cfg_set_compl_channel, true),
    SET(rpma_conn_cfg_set_srq, o.srq),
    GET(rpma_conn_cfg_get_timeout, o.cfg, &number),
    GET(rpma_conn_cfg_get_cq_size, o.cfg, &size32),
    GET(rpma_conn_cfg_get_rcq_size, o.cfg, &size32),
    GET(rpma_conn_cfg_get_sq_size, o.cfg, &size32),
    GET(rpma_conn_cfg_get_rq_size, o.cfg, &size32),
    GET(rpma_conn_cfg_get_compl_channel, o.cfg, &flag),
    GET(rpma_conn_cfg_get_srq, o.cfg, &new_srq),
    WRONG(rpma_ep_listen, INVAL, no_peer, "here", "1", &new_ep),
    WRONG(rpma_ep_listen, INVAL, o.peer, nullptr, "1", &new_ep),
    WRONG(rpma_ep_listen, INVAL, o.peer, "here", nullptr, &new_ep),
    WRONG(rpma_ep_listen, INVAL, o.peer, "here", "1", nullptr),
    WRONG(rpma_ep_shutdown, INVAL, nullptr),
    GET(rpma_ep_get_fd, o.ep, &number),
    WRONG(rpma_ep_next_conn_req, INVAL, nullptr, nullptr, &new_req),
    WRONG(rpma_ep_next_conn_req, INVAL, o.ep, nullptr, nullptr),
    WRONG(rpma_conn_req_new, INVAL, no_peer, "there", "1", nullptr, &new_req),
    WRONG(rpma_conn_req_new, INVAL, o.peer, nullptr, "1", nullptr, &new_req),
    WRONG(rpma_conn_req_new, INVAL, o.peer, "there", nullptr, nullptr, &new_req),
    WRONG(rpma_conn_req_new, INVAL, o.peer, "there", "1", nullptr, nullptr),
    WRONG(rpma_conn_req_delete, INVAL, nullptr),
    WRONG(rpma_conn_req_connect, INVAL, nullptr, nullptr, &new_conn),
    WRONG(rpma_conn_req_connect, INVAL, &no_req, nullptr, &new_conn),
    Row{"rpma_conn_req_connect", RPMA_E_INVAL, [] { return connect_wrongly(nullptr, nullptr); }},
    Row{"rpma_conn_req_connect", RPMA_E_INVAL, [] { return connect_wrongly(&no_bytes, &new_conn); }},
    Row{"rpma_conn_req_connect", RPMA_E_INVAL, [] { return connect_wrongly(&no_pointer, &new_conn); }},
    WRONG(rpma_conn_req_recv, INVAL, nullptr, o.mr, 0, 8, nullptr),
    WRONG(rpma_conn_req_recv, INVAL, o.req, nullptr, 0, 0, nullptr),
    WRONG(rpma_conn_req_recv, INVAL, o.req, o.mr, 0, kHuge, nullptr),
    GET(rpma_conn_req_get_private_data, o.req, &data),
    GET(rpma_conn_get_event_fd, o.conn, &number),
    GET(rpma_conn_next_event, o.conn, &event),
    GET(rpma_conn_get_private_data, o.conn, &data),
    WRONG(rpma_conn_apply_remote_peer_cfg, INVAL, nullptr, o.peer_cfg),
    WRONG(rpma_conn_apply_remote_peer_cfg, INVAL, o.conn, nullptr),
    GET(rpma_conn_get_qp_num, o.conn, &size32),
    GET(rpma_conn_get_cq, o.conn, &new_cq),
    GET(rpma_conn_get_rcq, o.conn, &new_cq),
    GET(rpma_conn_get_compl_fd, o.conn, &number),
    WRONG(rpma_conn_get_compl_fd, NOT_SHARED_CHNL, o.conn, &number),
    WRONG(rpma_conn_wait, INVAL, nullptr, 0, &new_cq, &flag),
    WRONG(rpma_conn_wait, INVAL, o.conn, 0, nullptr, &flag),
    WRONG(rpma_conn_wait, NOT_SHARED_CHNL, o.conn, 0, &new_cq, &flag),
    WRONG(rpma_conn_disconnect, INVAL, nullptr),
    WRONG(rpma_conn_delete, INVAL, nullptr),
    WRONG(rpma_read, INVAL, nullptr, o.mr, 0, o.remote, 0, 8, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, nullptr, 0, o.remote, 0, 0, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, o.mr, 0, nullptr, 0, 0, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, nullptr, 1, nullptr, 0, 0, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, nullptr, 0, nullptr, 1, 0, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, nullptr, 0, nullptr, 0, 1, kOn, nullptr),
    WRONG(rpma_read, INVAL, o.conn, o.mr, 0, o.remote, 0, 8, 0, nullptr),
    WRONG(rpma_read, INVAL, o.conn, o.mr, 0, o.remote, 0, kHuge, kOn, nullptr),
    WRONG(rpma_write, INVAL, nullptr, o.remote, 0, o.mr, 0, 8, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, nullptr, 0, o.mr, 0, 0, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, o.remote, 0, nullptr, 0, 0, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, nullptr, 1, nullptr, 0, 0, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, nullptr, 0, nullptr, 1, 0, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, nullptr, 0, nullptr, 0, 1, kOn, nullptr),
    WRONG(rpma_write, INVAL, o.conn, o.remote, 0, o.mr, 0, 8, 0, nullptr),
    WRONG(rpma_write, INVAL, o.conn, o.remote, 0, o.mr, 0, kHuge, kOn, nullptr),
    WRONG(rpma_write_with_imm, INVAL, nullptr, o.remote, 0, o.mr, 0, 8, kOn, 1, nullptr),
    WRONG(rpma_write_with_imm, INVAL, o.conn, nullptr, 0, o.mr, 0, 0, kOn, 1, nullptr),
    WRONG(rpma_write_with_imm, INVAL, o.conn, o.remote, 0, nullptr, 0, 0, kOn, 1, nullptr),
    WRONG(rpma_write_with_imm, INVAL, o.conn, nullptr, 1, nullptr, 0, 0, kOn, 1, nullptr),
    WRONG(rpma_write_with_imm, INVAL, o.conn, o.remote, 0, o.mr, 0, 8, 0, 1, nullptr),
    WRONG(rpma_atomic_write, INVAL, nullptr, o.remote, 0, bytes, kOn, nullptr),
    WRONG(rpma_atomic_write, INVAL, o.conn, nullptr, 0, bytes, kOn, nullptr),
    WRONG(rpma_atomic_write, INVAL, o.conn, o.remote, 0, nullptr, kOn, nullptr),
    WRONG(rpma_atomic_write, INVAL, o.conn, o.remote, 4, bytes, kOn, nullptr),
    WRONG(rpma_atomic_write, INVAL, o.conn, o.remote, 7, bytes, kOn, nullptr),
    WRONG(rpma_atomic_write, INVAL, o.conn, o.remote, 0, bytes, 0, nullptr),
    WRONG(rpma_flush, INVAL, nullptr, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr),
    WRONG(rpma_flush, INVAL, o.conn, nullptr, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr),
    WRONG(rpma_flush, INVAL, o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, nullptr),
    WRONG(rpma_flush, INVAL, o.conn, o.remote, 0, 8, static_cast<rpma_flush_type>(2), kOn, nullptr),
    WRONG(rpma_flush, INVAL, o.conn, o.remote, 0, 8, static_cast<rpma_flush_type>(-1), kOn, nullptr),
    WRONG(rpma_flush, INVAL, o.conn, o.remote, sizeof o.memory, 1, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr),
    WRONG(rpma_flush, NOSUPP, o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kOn, nullptr),
    WRONG(rpma_send, INVAL, nullptr, o.mr, 0, 8, kOn, nullptr),
    WRONG(rpma_send, INVAL, o.conn, nullptr, 1, 0, kOn, nullptr),
    WRONG(rpma_send, INVAL, o.conn, nullptr, 0, 1, kOn, nullptr),
    WRONG(rpma_send, INVAL, o.conn, o.mr, 0, 8, 0, nullptr),
    WRONG(rpma_send, INVAL, o.conn, o.mr, 0, kHuge, kOn, nullptr),
    WRONG(rpma_send_with_imm, INVAL, nullptr, o.mr, 0, 8, kOn, 1, nullptr),
    WRONG(rpma_send_with_imm, INVAL, o.conn, nullptr, 1, 0, kOn, 1, nullptr),
    WRONG(rpma_send_with_imm, INVAL, o.conn, nullptr, 0, 1, kOn, 1, nullptr),
    WRONG(rpma_send_with_imm, INVAL, o.conn, o.mr, 0, 8, 0, 1, nullptr),
    WRONG(rpma_recv, INVAL, nullptr, o.mr, 0, 8, nullptr),
    WRONG(rpma_recv, INVAL, o.conn, nullptr, 1, 0, nullptr),
    WRONG(rpma_recv, INVAL, o.conn, nullptr, 0, 1, nullptr),
    WRONG(rpma_recv, INVAL, o.conn, o.mr, 0, kHuge, nullptr),
    GET(rpma_cq_get_fd, o.cq, &number),
    WRONG(rpma_cq_wait, INVAL, nullptr),
    WRONG(rpma_cq_get_wc, INVAL, nullptr, 1, &wc, &number),
    WRONG(rpma_cq_get_wc, INVAL, o.cq, 0, &wc, &number),
    WRONG(rpma_cq_get_wc, INVAL, o.cq, -1, &wc, &number),
    WRONG(rpma_cq_get_wc, INVAL, o.cq, 1, nullptr, &number),
    WRONG(rpma_cq_get_wc, INVAL, o.cq, 2, &wc, nullptr),
    WRONG(rpma_log_set_threshold, INVAL, static_cast<rpma_log_threshold>(2), RPMA_LOG_LEVEL_INFO),
    WRONG(rpma_log_set_threshold, INVAL, static_cast<rpma_log_threshold>(-1), RPMA_LOG_LEVEL_INFO),
    WRONG(rpma_log_set_threshold, INVAL, RPMA_LOG_THRESHOLD, static_cast<rpma_log_level>(-2)),
    WRONG(rpma_log_set_threshold, INVAL, RPMA_LOG_THRESHOLD, static_cast<rpma_log_level>(6)),
    WRONG(rpma_log_get_threshold, INVAL, static_cast<rpma_log_threshold>(2), &level),
    WRONG(rpma_log_get_threshold, INVAL, RPMA_LOG_THRESHOLD, nullptr),
};

// None of these arguments is wrong.
constexpr const char* kCannotFail[] = {"rpma_err_2str", "rpma_utils_conn_event_2str", "rpma_log_set_function"};

int set_up(void**) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  o.make();
  o.connect();
  return rpma_conn_req_new(o.peer, "there", "1", nullptr, &o.req);
}

bool is_explained() {
  static const bool is = getenv("DAPPLE_EXPLAIN") != nullptr;
  return is;
}

// A right program may get the other errors, which are only lines.
bool is_reported(const Row& row) {
  const std::vector<std::string> reports = std::exchange(fake::state.reports, {});
  for (const std::string& report : reports) print_message("%s\n", report.c_str());
  if (!is_explained() || row.expected != RPMA_E_INVAL) return reports.empty();
  const std::string begin = std::string(row.function) + "() fails with RPMA_E_INVAL: ";
  return reports.size() == 1 && reports[0].starts_with(begin) && reports[0].ends_with(".");
}

int tear_down(void**) {
  o.free();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  return 0;
}

void each_wrong_argument_gives_its_error(void**) {
  int failed = 0;
  for (const Row& row : kRows) {
    const int live = fake::live();
    const int result = row.call();
    const bool reported = is_reported(row);
    const bool good = result == row.expected && fake::live() == live && fake::state.posted.empty() && reported;
    if (good) continue;
    ++failed;
    print_error("row %zd, %s: %s, %d objects more, %zu posted%s\n", &row - kRows, row.function, rpma_err_2str(result),
                fake::live() - live, fake::state.posted.size(), reported ? "" : ", not reported as it should be");
  }
  assert_int_equal(failed, 0);
  fake::assert_nothing_wrong();
}

void nothing_is_written_then(void**) {
  for (const void* each : {static_cast<void*>(new_peer), static_cast<void*>(new_mr), static_cast<void*>(new_remote),
                           static_cast<void*>(new_srq), static_cast<void*>(new_ep), static_cast<void*>(new_req),
                           static_cast<void*>(new_conn), static_cast<void*>(new_cq), static_cast<void*>(new_context),
                           static_cast<void*>(new_peer_cfg)})
    assert_null(each);
}

void every_exported_function_has_a_row(void**) {
  std::set<std::string> covered(std::begin(kCannotFail), std::end(kCannotFail));
  for (const Row& row : kRows) covered.insert(row.function);
  std::istringstream exported(EXPORTED_FUNCTIONS);
  int count = 0;
  for (std::string name; exported >> name; ++count) {
    if (!covered.contains(name)) print_error("%s has no row\n", name.c_str());
    assert_true(covered.contains(name));
  }
  assert_int_equal(count, 87);
}

// If the pointer is NULL already, its object is gone.
void deleting_nothing_succeeds(void**) {
  Objects none;
  assert_int_equal(rpma_peer_delete(&none.peer), 0);
  assert_int_equal(rpma_mr_dereg(&none.mr), 0);
  assert_int_equal(rpma_mr_remote_delete(&none.remote), 0);
  assert_int_equal(rpma_conn_cfg_delete(&none.cfg), 0);
  assert_int_equal(rpma_srq_cfg_delete(&none.srq_cfg), 0);
  assert_int_equal(rpma_peer_cfg_delete(&none.peer_cfg), 0);
  assert_int_equal(rpma_srq_delete(&none.srq), 0);
  assert_int_equal(rpma_ep_shutdown(&none.ep), 0);
  assert_int_equal(rpma_conn_req_delete(&none.req), 0);
  assert_int_equal(rpma_conn_delete(&none.conn), 0);
}

void defaults_are_those_of_the_original(void**) {
  rpma_conn_cfg* cfg = nullptr;
  rpma_srq_cfg* srq_cfg = nullptr;
  rpma_srq* srq = o.srq;
  assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
  assert_int_equal(rpma_srq_cfg_new(&srq_cfg), 0);
#define IS(function, from, out, value)         \
  do {                                         \
    assert_int_equal(function(from, &out), 0); \
    assert_true(out == (value));               \
  } while (0)
  IS(rpma_conn_cfg_get_timeout, cfg, number, 1000);
  IS(rpma_conn_cfg_get_cq_size, cfg, size32, 10U);
  IS(rpma_conn_cfg_get_rcq_size, cfg, size32, 0U);
  IS(rpma_conn_cfg_get_sq_size, cfg, size32, 10U);
  IS(rpma_conn_cfg_get_rq_size, cfg, size32, 10U);
  IS(rpma_conn_cfg_get_compl_channel, cfg, flag, false);
  IS(rpma_conn_cfg_get_srq, cfg, srq, nullptr);
  IS(rpma_srq_cfg_get_rq_size, srq_cfg, size32, 20U);
  IS(rpma_srq_cfg_get_rcq_size, srq_cfg, size32, 20U);
  assert_int_equal(rpma_conn_cfg_set_timeout(cfg, 0), 0);
  assert_int_equal(rpma_conn_cfg_set_rcq_size(cfg, 7), 0);
  IS(rpma_conn_cfg_get_timeout, cfg, number, 0);
  IS(rpma_conn_cfg_get_rcq_size, cfg, size32, 7U);
  IS(rpma_conn_cfg_get_cq_size, cfg, size32, 10U);
  assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
  assert_int_equal(rpma_srq_cfg_delete(&srq_cfg), 0);
  assert_null(cfg);
  assert_null(srq_cfg);
}

void a_shared_channel_and_an_srqs_own_cq_exclude_each_other(void**) {
  const int live = fake::live();
  rpma_conn_req* req = nullptr;
  assert_int_equal(rpma_conn_cfg_set_srq(o.cfg, o.srq), 0);
  assert_int_equal(rpma_conn_cfg_set_compl_channel(o.cfg, true), 0);
  assert_int_equal(rpma_conn_req_new(o.peer, "there", "1", o.cfg, &req), RPMA_E_INVAL);
  assert_int_equal(fake::state.reports.size(), is_explained() ? 1 : 0);
  assert_null(req);
  assert_int_equal(fake::live(), live);
}

void words_are_those_of_the_original(void**) {
  assert_string_equal(rpma_err_2str(0), "Success");
  assert_string_equal(rpma_err_2str(RPMA_E_NOT_SHARED_CHNL), "Completion channel is not shared");
  assert_string_equal(rpma_err_2str(-100010), "Unknown error");
  assert_string_equal(rpma_err_2str(1), "Unknown error");
  assert_string_equal(rpma_utils_conn_event_2str(RPMA_CONN_UNREACHABLE), "Connection unreachable");
  assert_string_equal(rpma_utils_conn_event_2str(static_cast<rpma_conn_event>(5)), "Unsupported connection event");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_wrong_argument_gives_its_error, set_up, tear_down),
      cmocka_unit_test(nothing_is_written_then),
      cmocka_unit_test(every_exported_function_has_a_row),
      cmocka_unit_test(deleting_nothing_succeeds),
      cmocka_unit_test_setup_teardown(defaults_are_those_of_the_original, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_shared_channel_and_an_srqs_own_cq_exclude_each_other, set_up, tear_down),
      cmocka_unit_test(words_are_those_of_the_original),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
