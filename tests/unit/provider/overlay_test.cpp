// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The overlay as a whole: attaching it, closing, fork and threads.
#include "provider/overlay/overlay.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/unit/provider/overlay_rig.hpp"

using namespace dapple::provider;

namespace {

void attach__replaces_regions_and_closing_only(void**) {
  for (const Layout& layout : kLayouts) {
    open_context(layout);
    AnyFunction before[kMaxOperations];
    for (size_t i = 0; i < layout.num_operations; ++i) before[i] = fake->entry(i);
    const ibv_context_ops public_before = fake->context->ops;
    assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
    size_t changed = 0;
    for (size_t i = 0; i < layout.num_operations; ++i) changed += fake->entry(i) != before[i];
    assert_int_equal(changed, layout.index(Operation::reg_mr_ex) < 0 ? 7 : 8);
    const ibv_context_ops& ops = fake->context->ops;
    assert_ptr_equal(ops.poll_cq, public_before.poll_cq);
    assert_ptr_equal(ops.post_send, public_before.post_send);
    assert_ptr_equal(ops.post_recv, public_before.post_recv);
    assert_ptr_equal(ops.post_srq_recv, public_before.post_srq_recv);
    assert_ptr_equal(ops.req_notify_cq, public_before.req_notify_cq);
    close_context();
    // Everything is as it was.
    for (size_t i = 0; i < layout.num_operations; ++i) assert_ptr_equal(fake->entry(i), before[i]);
    assert_int_equal(provider.num_closed, 1);
    delete fake;
  }
}

// Posting and polling, for a policy that watches them.
class Watch final : public RegionPolicy, public TransferWatch {
 public:
  int before_registration(RegionRequest&, void**) override { return 0; }
  void registered(void*) override {}
  void registration_failed(void*) override {}
  int before_reregistration(int, int, void*) override { return 0; }
  void access_changed(int, void*) override {}
  void deregistered(void*) override {}
  TransferWatch* transfers() override { return this; }
  int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means) override {
    iovec range = {};
    found = means.find(qp->context, *requests->sg_list, &range) ? range.iov_base : nullptr;
    return means.post_send(qp, requests, bad);
  }
  int poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*)) override {
    const int polled = poll_cq(cq, count, completions);
    num_polled += polled;
    return polled;
  }
  void emptied(const ibv_qp*) override { ++num_emptied; }

  void* found = nullptr;
  int num_polled = 0;
  int num_emptied = 0;
};

int num_posted;

void attach__watches_transfers(void**) {
  for (const Layout& layout : kLayouts) {
    Watch watch;
    num_posted = 0;
    open_context(layout);
    fake->set_operation(
        Operation::post_send, +[](ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return ++num_posted, 0; });
    fake->set_operation(
        Operation::poll_cq, +[](ibv_cq*, int count, ibv_wc*) { return count; });
    fake->set_operation(
        Operation::modify_qp, +[](ibv_qp*, ibv_qp_attr*, int) { return 0; });
    fake->set_operation(
        Operation::destroy_qp, +[](ibv_qp*) { return 0; });
    fake->publish();
    assert_int_equal(attach_it(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, &watch), 0);
    ibv_mr* mr = reg_mr(memory, 64, 0x7000);
    ibv_qp qp = {};
    ibv_cq cq = {};
    qp.context = cq.context = fake->context;
    ibv_sge segment = {0x7000 + 8, 8, mr->lkey};
    ibv_send_wr request = {};
    request.sg_list = &segment;
    ibv_send_wr* bad = nullptr;
    assert_int_equal(ibv_post_send(&qp, &request, &bad), 0);
    assert_int_equal(num_posted, 1);
    assert_ptr_equal(watch.found, memory + 8);
    ibv_wc completions[2];
    assert_int_equal(ibv_poll_cq(&cq, 2, completions), 2);
    assert_int_equal(watch.num_polled, 2);
    assert_int_equal(ibv_poll_cq(&cq, 0, completions), 0);
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    const auto modify = reinterpret_cast<ModifyQp>(fake->operation(Operation::modify_qp));
    assert_int_equal(modify(&qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(watch.num_emptied, 0);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(modify(&qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(watch.num_emptied, 1);
    assert_int_equal(reinterpret_cast<DestroyQp>(fake->operation(Operation::destroy_qp))(&qp), 0);
    assert_int_equal(watch.num_emptied, 2);
    assert_int_equal(dereg_mr(mr), 0);
    end_context();
  }
}

void attach__again_does_nothing(void**) {
  open_attached(kLayouts[0]);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
  assert_int_equal(fake->num_sets, 1);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr, 1), EBUSY);
  assert_int_equal(fake->num_sets, 1);
  end_context();
}

void attach__refusal_changes_nothing(void**) {
  open_context(kLayouts[0]);
  fake->set_entry(3, nullptr);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), EOPNOTSUPP);
  assert_non_null(why);
  assert_int_equal(fake->num_sets, 0);
  assert_int_equal(sync_device(nullptr, 0), EOPNOTSUPP);
  end_context();
}

void attach__contexts_are_apart(void**) {
  open_attached(kLayouts[0]);
  FakeContext* first = fake;
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  const Provider kept = provider;
  open_attached(kLayouts[5]);
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  end_context();
  fake = first;
  FakeContext::current = first;
  provider = kept;
  pd.context = first->context;
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void attach__late_leaves_older_regions_alone(void**) {
  open_context(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  ibv_mr* other = reg_mr(memory, 64, at(memory));
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr), 0);
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, kAccess), 0);
  assert_int_equal(provider.num_reregistered, 1);
  assert_int_equal(dereg_mr(mr), 0);
  assert_int_equal(dereg_mr(other), 0);
  assert_int_equal(provider.num_deregistered, 2);
  end_context();
}

void free_context__regions_that_are_left_are_forgotten(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  close_context();
  assert_int_equal(provider.num_closed, 1);
  assert_int_equal(sync_device(nullptr, 0), EOPNOTSUPP);
  delete mr;
  // The next context may have the same address.
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
  const ibv_sge segment = {at(memory), 64, 0x100};
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  provider.num_closed = 0;
  end_context();
}

void fork__child_has_the_overlay(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  const pid_t child = fork();
  if (child == 0) {
    // Reads, writes, closes: a lock that was left held would hang, and the alarm would end the process.
    alarm(10);
    const bool right = sync_device(&segment, 1) == 0 && dereg_mr(mr) == 0 && sync_device(&segment, 1) == EINVAL;
    close_context();
    _exit(right ? 0 : 1);
  }
  assert_true(child > 0);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

// A provider that many threads may call.
std::atomic<uint32_t> next_lkey;

ibv_mr* threads_reg_mr(ibv_pd* of, void*, size_t, uint64_t, int) {
  auto* mr = new ibv_mr();
  mr->context = of->context;
  mr->lkey = ++next_lkey;
  return mr;
}

int threads_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}

std::atomic<bool> forked;

void* register_and_sync(void* failures) {
  for (int i = 0; i < 500 || !forked; ++i) {
    ibv_mr* mr = reg_mr(memory, sizeof(memory), at(memory));
    const ibv_sge segment = {at(memory) + 64, 64, mr->lkey};
    if (sync_regions(dapple::coherence::cpu_back_end(), SyncDirection::kForCpu, fake->context, &segment, 1, nullptr) !=
            0 ||
        dereg_mr(mr) != 0) {
      *static_cast<int*>(failures) = i + 1;
    }
  }
  return nullptr;
}

void threads__register_and_sync_at_once(void**) {
  constexpr size_t kThreads = 4;
  pthread_t threads[kThreads];
  int failures[kThreads] = {};
  forked = false;
  open_context(kLayouts[0]);
  fake->set_operation(Operation::reg_mr, threads_reg_mr);
  fake->set_operation(Operation::dereg_mr, threads_dereg_mr);
  fake->publish();
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr), 0);
  for (size_t i = 0; i < kThreads; ++i) {
    assert_int_equal(pthread_create(&threads[i], nullptr, register_and_sync, &failures[i]), 0);
  }
  // A fork in between finds the lock in a consistent state, on both sides.
  const pid_t child = fork();
  forked = true;
  if (child == 0) {
    alarm(10);
    int failed = 0;
    register_and_sync(&failed);
    _exit(failed);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  for (size_t i = 0; i < kThreads; ++i) {
    assert_int_equal(pthread_join(threads[i], nullptr), 0);
    assert_int_equal(failures[i], 0);
  }
  end_context();
}

std::atomic<bool> maintaining;
std::atomic<bool> registered;
std::atomic<bool> waited_in_vain;

// Takes as long as a registration that runs beside it.
void clean_until_registered(uint32_t, const void*, size_t) noexcept {
  maintaining = true;
  for (int i = 0; i < 20000 && !registered; ++i) usleep(1000);
  waited_in_vain = !registered;
}

void* sync_slowly(void* segment) {
  dapple::coherence::BackEnd slow = dapple::coherence::cpu_back_end();
  slow.cpu.can_clean = true;
  slow.clean_range = clean_until_registered;
  sync_regions(slow, SyncDirection::kForDevice, fake->context, static_cast<const ibv_sge*>(segment), 1, nullptr);
  return nullptr;
}

void sync__maintenance_keeps_nobody_waiting(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  ibv_sge segment = {at(memory), 64, mr->lkey};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, sync_slowly, &segment), 0);
  while (!maintaining) usleep(100);
  ibv_mr* other = reg_mr(memory, 64, at(memory));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  registered = true;
  assert_int_equal(pthread_join(thread, nullptr), 0);
  assert_int_equal(waitpid(child, nullptr, 0), child);
  assert_false(waited_in_vain);
  assert_int_equal(dereg_mr(mr), 0);
  assert_int_equal(dereg_mr(other), 0);
  end_context();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(attach__replaces_regions_and_closing_only),
      cmocka_unit_test(attach__watches_transfers),
      cmocka_unit_test(attach__again_does_nothing),
      cmocka_unit_test(attach__refusal_changes_nothing),
      cmocka_unit_test(attach__contexts_are_apart),
      cmocka_unit_test(attach__late_leaves_older_regions_alone),
      cmocka_unit_test(free_context__regions_that_are_left_are_forgotten),
      cmocka_unit_test(fork__child_has_the_overlay),
      cmocka_unit_test(threads__register_and_sync_at_once),
      cmocka_unit_test(sync__maintenance_keeps_nobody_waiting),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
