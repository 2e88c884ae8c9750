// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The thread that answers the other members of an XRC domain. The test asks as
// these members.
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/xrc/futex.hpp"
#include "provider/soft/xrc/xrc_server.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider-soft/living_members.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::roce::Fault;
using dapple::tests::LivingMembers;

namespace {

constexpr uint32_t kFirst = 1, kSecond = 2;  // members

class Listener final : public XrcListener {
 public:
  void noted(Srq&) override {}
  void raised(Qp&, uint32_t) override {}
  void unused(Qp&) override {}
  void has_unused() override {}
};

// This process has one shared receive queue, with a receive.
class Rig {
 public:
  Rig() {
    assert_return_code(ftruncate(memory_, kXrcMemorySize), 0);
    void* mapped = mmap(nullptr, kXrcMemorySize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    bytes_ = static_cast<std::byte*>(mapped);
    assert_int_equal(table_.open_private(xrcd_), XrcTable::Opened::kDone);
    Problem problem;
    XrcDomain& domain = *xrcd_.domain;
    domain.shared = SharedXrcDomain::join(memory_, 1, 1 << 16, problem);
    assert_non_null(domain.shared.get());
    members_ = std::make_unique<LivingMembers>(memory_, kFirst, kSecond - kFirst + 1);
    for (const uint32_t member : {kFirst, kSecond}) reinterpret_cast<XrcRow*>(bytes_)[member].slot = member + 1;
    srq_.pd = &pd_;
    srq_.xrc.domain = &domain;
    srq_.xrc.cq = &cq_;
    assert_int_equal(srq_.queue.initialize(1, 1), 0);
    assert_int_equal(srq_.queue.post(1, {}), 0);
    assert_true(table_.add(srq_));
    domain.server = std::make_unique<XrcServer>(*domain.shared, table_, domain);
    assert_int_equal(domain.server->start(), 0);
  }
  ~Rig() {
    members_.reset();
    table_.remove(srq_);
    table_.close(xrcd_);
    munmap(bytes_, kXrcMemorySize);
    close(memory_);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  // An answer; the queue pair's question must not be executed twice.
  XrcAnswer ask(uint32_t member, uint32_t qpn, XrcOperation operation, uint32_t generation = 0) {
    const uint32_t self = xrcd_.domain->shared->self();
    auto& channel = *reinterpret_cast<XrcChannel*>(bytes_ + kXrcBoardSize +
                                                   (int64_t{member} * kMaxXrcMembers + self) * kXrcChannelSize);
    channel.question = {.operation = operation,
                        .sequence = next_question(),
                        .generation = generation,
                        .qpn = qpn,
                        .srq = operation == XrcOperation::kTake ? srq_.xrc.number : 0};
    channel.state = XrcChannel::kAsked;
    XrcRow& row = xrcd_.domain->shared->own_row();
    row.asked.fetch_or(uint64_t{1} << member);
    row.doorbell.fetch_add(1);
    futex_wake(row.doorbell);
    while (channel.state != XrcChannel::kAnswered) futex_wait(channel.state, XrcChannel::kAsked, nullptr);
    return channel.answer;
  }

 private:
  std::unique_ptr<LivingMembers> members_;
  const int memory_ = memfd_create("domain", MFD_CLOEXEC);
  std::byte* bytes_ = nullptr;
  Listener listener_;
  XrcTable table_{1, 1 << 16, 0, listener_};
  Xrcd xrcd_;
  Pd pd_;
  Cq cq_;
  Srq srq_;
};

// No queue has the number 0, but the question makes the queue pair known.
XrcAnswer make_known(Rig& rig, uint32_t member, uint32_t qpn, uint32_t generation = 0) {
  return rig.ask(member, qpn, XrcOperation::kInvalidate, generation);
}

void member__with_all_its_queue_pairs_known__leaves_room_for_others(void**) {
  Rig rig;
  for (uint32_t qpn = 1; qpn <= kMaxXrcGuests; ++qpn) make_known(rig, kFirst, qpn);
  const XrcAnswer refused = rig.ask(kFirst, kMaxXrcGuests + 1, XrcOperation::kTake);
  assert_int_equal(refused.found, kXrcMissing);
  assert_int_equal(refused.fault, Fault::kAccess);
  const XrcAnswer taken = rig.ask(kSecond, 1, XrcOperation::kTake);
  assert_int_equal(taken.found, kXrcFound);
  assert_int_equal(taken.fault, Fault::kNone);
}

// The thread may not have seen the end of the last one yet.
void successor__of_a_member_with_all_its_queue_pairs_known__has_room(void**) {
  Rig rig;
  for (uint32_t qpn = 1; qpn <= kMaxXrcGuests; ++qpn) make_known(rig, kFirst, qpn);
  assert_int_equal(rig.ask(kFirst, 1, XrcOperation::kTake, 1).found, kXrcFound);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(member__with_all_its_queue_pairs_known__leaves_room_for_others),
      cmocka_unit_test(successor__of_a_member_with_all_its_queue_pairs_known__has_room),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
