// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ends of queue pairs of XRC domains: which thread ends them, and who waits
// for it.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint32_t kQpn = 7;
constexpr XrcTable::Member kOther = {1, 5};

// Ends queue pairs as the verbs do, but leaves them in memory.
class Listener final : public XrcListener {
 public:
  void noted(Srq&) override {}
  void raised(Qp&, uint32_t) override {}
  void unused(Qp& qp) override {
    ended++;
    qp.xrc->table.end(qp);
    qp.xrc->table.ended(*qp.xrc);
  }
  void has_unused() override { left++; }

  int ended = 0;
  int left = 0;
};

// Only the addresses of contexts matter.
alignas(64) char places[2][64];
Context& context(int which) {
  return *reinterpret_cast<Context*>(places[which]);
}

// A domain that another member may have, too, and a queue pair of the first
// context.
struct Rig {
  Rig() {
    assert_return_code(ftruncate(memory, kXrcMemorySize), 0);
    xrcd.context = &context(1);
    assert_int_equal(table.open_private(xrcd), XrcTable::Opened::kDone);
    Problem problem;
    xrcd.domain->shared = SharedXrcDomain::join(memory, 1, 1 << 16, problem);
    assert_non_null(xrcd.domain->shared.get());
    prepare(qp, context(0));
    table.add(qp);
  }
  ~Rig() { close(memory); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void prepare(Qp& each, Context& of) {
    each.context = &of;
    each.qpn = kQpn;
    each.xrc = {new XrcQp(table, *xrcd.domain, xrcd, no_memory, each), [](XrcQp* parts) { delete parts; }};
  }
  // The thread that has claimed the queue pair ends it while call() runs in
  // another one. True if call() has waited for this.
  template <typename Call>
  bool waits_for_end(Call call) {
    std::atomic<bool> is_complete{false}, has_waited{false};
    std::thread caller([&] {
      call();
      has_waited = is_complete.load();
    });
    usleep(20'000);
    table.end(qp);
    usleep(20'000);
    is_complete = true;
    table.ended(*qp.xrc);
    caller.join();
    return has_waited;
  }

  const int memory = memfd_create("domain", MFD_CLOEXEC);
  Listener listener;
  XrcTable table{1, 1 << 16, 0, listener};
  XrcForeign no_memory{nullptr};
  Xrcd xrcd;
  Qp qp;
};

// The server must not end it: an end waits for the lock of receiving.
void queue_pair__without_its_last_foreign_handle__waits_for_another_thread(void**) {
  Rig rig;
  uint32_t state = 0;
  assert_int_equal(rig.table.open_foreign(*rig.xrcd.domain, kOther, kQpn, state), kXrcFound);
  assert_null(rig.table.close(rig.qp));
  rig.table.close_foreign(*rig.xrcd.domain, kOther, kQpn);
  assert_int_equal(rig.listener.ended, 0);
  assert_int_equal(rig.listener.left, 1);
  assert_true(rig.table.has_unused());
  rig.table.end_unused();
  assert_int_equal(rig.listener.ended, 1);
  assert_false(rig.table.has_unused());
  rig.table.close(rig.xrcd);
}

void queue_pair__of_a_dead_member__waits_for_another_thread(void**) {
  Rig rig;
  uint32_t state = 0;
  assert_int_equal(rig.table.open_foreign(*rig.xrcd.domain, kOther, kQpn, state), kXrcFound);
  assert_null(rig.table.close(rig.qp));
  rig.table.end_foreign(*rig.xrcd.domain, 0);
  assert_int_equal(rig.listener.ended, 0);
  // The thread that closes the domain does not wait for the background thread.
  rig.table.close(rig.xrcd);
  assert_int_equal(rig.listener.ended, 1);
  assert_false(rig.table.has_unused());
}

void forget__while_another_thread_ends_a_queue_pair__waits(void**) {
  Rig rig;
  assert_ptr_equal(rig.table.close(rig.qp), &rig.qp);
  Qp* found = &rig.qp;
  assert_true(rig.waits_for_end([&] { found = rig.table.forget(context(0)); }));
  assert_null(found);
  rig.table.close(rig.xrcd);
}

void close__while_another_thread_ends_a_queue_pair__waits(void**) {
  Rig rig;
  assert_ptr_equal(rig.table.close(rig.qp), &rig.qp);
  assert_true(rig.waits_for_end([&] { rig.table.close(rig.xrcd); }));
}

void forget__of_the_last_handle__returns_the_queue_pair(void**) {
  Rig rig;
  Qp handle;
  rig.prepare(handle, context(1));
  rig.xrcd.context = &context(0);
  assert_true(rig.table.open(kQpn, handle));
  assert_null(rig.table.close(rig.qp));
  assert_ptr_equal(rig.table.forget(context(1)), &rig.qp);
  rig.listener.unused(rig.qp);
  assert_null(rig.table.forget(context(1)));
  rig.table.close(rig.xrcd);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(queue_pair__without_its_last_foreign_handle__waits_for_another_thread),
      cmocka_unit_test(queue_pair__of_a_dead_member__waits_for_another_thread),
      cmocka_unit_test(forget__while_another_thread_ends_a_queue_pair__waits),
      cmocka_unit_test(close__while_another_thread_ends_a_queue_pair__waits),
      cmocka_unit_test(forget__of_the_last_handle__returns_the_queue_pair),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
