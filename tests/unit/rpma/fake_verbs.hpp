// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A libibverbs, a librdmacm and a libdapple that are made up, with one device, for tests of librpma's code. Everything
// that the code calls of them is here, or a test does not link. Each call may be made to fail; what is made and not
// given back is counted; what is posted is kept.
#pragma once

#include <infiniband/dappledv.h>
#include <rdma/rdma_cma.h>
#include <sys/uio.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"

namespace fake {

enum Kind { kPd, kChannel, kCq, kQp, kSrq, kMr, kEventChannel, kCmId, kAddress, kKinds };

struct Posted {
  std::string what;  // "send": ibv_post_send; "recv", "srq recv", "atomic write", "flush"
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode{};
  unsigned flags = 0;
  bool has_segment = false;
  ibv_sge segment{};
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t imm = 0;  // as it travels
  uint64_t length = 0;
  uint8_t placement = 0;
  uint64_t bytes = 0;  // of an inline or native atomic write
};

struct Synced {
  bool for_cpu;
  iovec range;
};

struct State {
  // The device, and what libibverbs knows.
  dappledv_device_attr attr{};
  bool attached = false;
  ibv_device_attr_ex device{};
  uint64_t known_send_ops = 0;   // else a queue pair with them is refused
  bool has_create_qp_ex = true;  // siw has not
  unsigned refused_access = 0;   // regions with these bits are refused ...
  int refused_error = EINVAL;    // ... with this
  bool unpinned_only = false;    // regions are, too, without on-demand paging
  int post_error = 0;

  // What happened.
  std::vector<std::string> calls;  // those that may fail
  int live[kKinds] = {};
  int created_extended = 0;
  std::vector<unsigned> accesses;  // of registrations that were tried
  std::vector<Posted> posted;
  std::vector<Synced> synced;
  std::vector<ibv_sge> advised;
  std::vector<int> acknowledged;  // events at a time
  int rejected = 0;
  std::string wrong;  // use that the real ones would not survive

  // What comes.
  std::vector<ibv_wc> completions;   // of any CQ
  std::function<void()> after_poll;  // once, when a poll has taken some and not returned
  int cq_events = 0;
  ibv_cq* cq_event_source = nullptr;  // null: the last CQ made
  struct Event {
    rdma_cm_event_type type;
    std::string private_data;
  };
  std::vector<Event> events;
  int no_event_error = EAGAIN;

  // Each call is a cancellation point, as most of the real ones are.
  bool cancellation_points = false;
  // The thread that takes an event is cancelled by then.
  bool cancelled_with_event = false;

  // The call of this number, from 1, fails.
  int fails_at = 0;
  int error = 0;
};

extern State state;

// A state without memory of earlier tests; the device is coherent, and does nothing natively.
void reset();
ibv_context* context();
// The context is another device's from now on, which says what state has.
void change_device();
// The device has native operations and libibverbs knows them.
void make_native();
// The device is not coherent, and somebody said that it is to be used.
void make_noncoherent();
// Of all kinds together.
int live();

inline void assert_nothing_wrong() {
  if (!state.wrong.empty()) print_error("%s\n", state.wrong.c_str());
  assert_true(state.wrong.empty());
}

}  // namespace fake
