// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A fake libibverbs, librdmacm and libdapple, with one device, for tests of librpma's code. They have every function
// that the code calls; without one a test does not link. Each call may be made to fail; unreleased objects are counted;
// posted requests are kept.
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
  uint32_t imm = 0;  // in the wire's byte order
  uint64_t length = 0;
  uint8_t placement = 0;
  uint64_t bytes = 0;  // for an inline or native atomic write
};

struct Synced {
  bool for_cpu;
  iovec range;
};

struct State {
  // The device, and the features that libibverbs knows.
  dappledv_device_attr attr{};
  bool attached = false;
  ibv_device_attr_ex device{};
  uint64_t known_send_ops = 0;   // otherwise a queue pair with them is refused
  bool has_create_qp_ex = true;  // false on siw
  unsigned refused_access = 0;   // regions with these bits are refused ...
  int refused_error = EINVAL;    // ... with this errno
  bool unpinned_only = false;    // regions are, too, without on-demand paging
  int post_error = 0;

  // Records.
  std::vector<std::string> calls;  // the calls that may fail
  int live[kKinds] = {};
  int created_extended = 0;
  std::vector<unsigned> accesses;  // of attempted registrations
  std::vector<Posted> posted;
  std::vector<Synced> synced;
  std::vector<ibv_sge> advised;
  std::vector<int> acknowledged;  // events acknowledged at a time
  int rejected = 0;
  ibv_qp_state qp_state = IBV_QPS_RTS;
  std::vector<std::string> reports;  // of errors, with the remedies
  std::string wrong;                 // uses that the real libraries would not survive

  // Future events.
  std::vector<ibv_wc> completions;   // of any CQ
  bool drops_completions = false;    // when a queue pair is destroyed, as mlx5 does
  std::function<void()> after_poll;  // once, when a poll has taken some and not returned yet
  int cq_events = 0;
  ibv_cq* cq_event_source = nullptr;  // null: the last CQ made
  struct Event {
    rdma_cm_event_type type;
    std::string private_data;
  };
  std::vector<Event> events;
  int no_event_error = EAGAIN;

  // Each call is a cancellation point, as most real ones are.
  bool cancellation_points = false;
  // The thread that takes an event has been cancelled by then.
  bool cancelled_with_event = false;

  // The call with this number, from 1, fails.
  int fails_at = 0;
  int error = 0;
};

extern State state;

// Resets the state between tests; the device is coherent, and does nothing natively.
void reset();
ibv_context* context();
// From now on the context belongs to another device, with the attributes in the state.
void change_device();
// The device has native operations and libibverbs knows them.
void make_native();
// The device is not coherent, and an override allows it.
void make_noncoherent();
// The number of objects of all kinds.
int live();

inline void assert_nothing_wrong() {
  if (!state.wrong.empty()) print_error("%s\n", state.wrong.c_str());
  assert_true(state.wrong.empty());
}

}  // namespace fake
