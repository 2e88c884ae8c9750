// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A receiving queue pair of XRC takes receives of a queue that the program destroys.
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/soft/xrc/xrc_server.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::roce::Accessor;
using dapple::roce::Fault;
using dapple::roce::RemoteRange;
using dapple::roce::Segment;

namespace {

class Listener final : public XrcListener {
 public:
  void noted(Srq&) override {}
  void raised(Qp&, uint32_t) override {}
  void unused(Qp&) override {}
  void has_unused() override {}
};

class CountingMemory final : public TargetMemory {
 public:
  Fault check_remote(Accessor, const RemoteRange&, uint32_t) override { return Fault::kNone; }
  Fault write(Accessor, const RemoteRange&, const std::byte*) override { return Fault::kNone; }
  Fault read(Accessor, const RemoteRange&, std::byte*) override { return Fault::kNone; }
  Fault compare_swap(Accessor, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t&) override { return Fault::kNone; }
  Fault fetch_add(Accessor, uint32_t, uint64_t, uint64_t, uint64_t&) override { return Fault::kNone; }
  Fault scatter(Accessor, std::span<const Segment>, uint64_t, const std::byte*, size_t) override {
    ++scattered;
    return Fault::kNone;
  }
  Fault invalidate_remote(Accessor, uint32_t) override { return Fault::kNone; }

  int scattered = 0;
};

// Two queues of one protection domain and of the queue pair's own context, with a receive each.
struct Rig {
  Rig() {
    assert_int_equal(table.open_private(xrcd), XrcTable::Opened::kDone);
    for (Srq& srq : srqs) {
      srq.pd = &pd;
      srq.xrc.domain = xrcd.domain;
      srq.xrc.cq = &cq;
      srq.xrc.memory = &memory;
      assert_int_equal(srq.queue.initialize(1, 1), 0);
      assert_int_equal(srq.queue.post(1, {}), 0);
      assert_true(table.add(srq));
    }
    receives.emplace(table, *xrcd.domain, memory, qp.events, qp.qpn);
    request.segments = &room;
  }
  ~Rig() {
    receives.reset();
    table.close(xrcd);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void take(uint32_t srq) {
    uint32_t domain = 0;
    assert_true(receives->select(srq, domain));
    assert_true(receives->take(request));
    self = {domain, 7};
  }

  Listener listener;
  XrcTable table{1, 1 << 16, 0, listener};
  CountingMemory memory;
  Xrcd xrcd;
  Pd pd;
  Cq cq;
  Srq srqs[2];
  Qp qp;
  std::optional<XrcReceives> receives;
  dapple::roce::ReceiveRequest request;
  Segment room;
  Accessor self;
};

void scatter__to_a_receive_of_a_destroyed_queue__is_refused(void**) {
  Rig rig;
  XrcMemory seen(*rig.receives);
  rig.take(rig.srqs[0].xrc.number);
  const std::byte byte{};
  assert_int_equal(seen.scatter(rig.self, {}, 0, &byte, 1), Fault::kNone);
  assert_int_equal(rig.memory.scattered, 1);
  rig.table.remove(rig.srqs[0]);
  assert_int_equal(seen.scatter(rig.self, {}, 1, &byte, 1), Fault::kAccess);
  assert_int_equal(rig.memory.scattered, 1);
  // The other queue stays.
  rig.take(rig.srqs[1].xrc.number);
  assert_int_equal(seen.scatter(rig.self, {}, 0, &byte, 1), Fault::kNone);
  assert_int_equal(rig.memory.scattered, 2);
  rig.table.remove(rig.srqs[1]);
}

void select__of_a_destroyed_queue__is_refused(void**) {
  Rig rig;
  const uint32_t gone = rig.srqs[0].xrc.number;
  rig.take(gone);
  rig.table.remove(rig.srqs[0]);
  uint32_t domain = 0;
  assert_false(rig.receives->select(gone, domain));
  rig.table.remove(rig.srqs[1]);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(scatter__to_a_receive_of_a_destroyed_queue__is_refused),
      cmocka_unit_test(select__of_a_destroyed_queue__is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
