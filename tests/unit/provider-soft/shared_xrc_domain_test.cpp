// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process as a member of a shared XRC domain. The test writes for the
// other member, whose life is a child's.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "provider/soft/xrc/shared_domain.hpp"
#include "provider/soft/xrc/xrc_foreign.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider-soft/living_members.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::roce::Accessor;
using dapple::roce::Fault;
using dapple::tests::LivingMembers;

namespace {

constexpr uint32_t kOther = 1;
constexpr uint32_t kFirst = 1 << 16;
constexpr uint32_t kOtherFirst = 2 << 16;
constexpr uint32_t kOtherNumber = kOtherFirst + 5;
constexpr Accessor kWho = {kForeignQueue | kOtherNumber, 7};

// A domain's memory with a living member that does not answer, and this
// process' row.
class Domain {
 public:
  Domain() : memory_(memfd_create("domain", MFD_CLOEXEC)) {
    assert_return_code(ftruncate(memory_, kXrcMemorySize), 0);
    void* mapped = mmap(nullptr, kXrcMemorySize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    bytes_ = static_cast<std::byte*>(mapped);
    other_ = std::make_unique<LivingMembers>(memory_, kOther, 1);
    Problem problem;
    shared = SharedXrcDomain::join(memory_, 1, kFirst, problem);
    assert_non_null(shared.get());
    XrcRow& row = row_of(kOther);
    row.first_number = kOtherFirst;
    row.numbers[0] = 1u << 5;
    row.slot = 2;
  }
  ~Domain() {
    shared.reset();
    other_.reset();
    munmap(bytes_, kXrcMemorySize);
    close(memory_);
  }
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  int memory() const { return memory_; }
  XrcRow& row_of(uint32_t member) { return reinterpret_cast<XrcRow*>(bytes_)[member]; }
  XrcChannel& channel_to_other() {
    return *reinterpret_cast<XrcChannel*>(bytes_ + kXrcBoardSize +
                                          (shared->self() * int64_t{kMaxXrcMembers} + kOther) * kXrcChannelSize);
  }

  std::unique_ptr<SharedXrcDomain> shared;

 private:
  const int memory_;
  std::byte* bytes_ = nullptr;
  std::unique_ptr<LivingMembers> other_;
};

// Answers questions as the other member.
class Answers {
 public:
  explicit Answers(XrcChannel& channel) : channel_(channel), thread_([this] { work(); }) {}
  ~Answers() { end(); }

  // Returns the questions. No more are answered.
  std::vector<XrcQuestion> end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return asked_;
  }

 private:
  void work() {
    while (!ends_) {
      if (channel_.state == XrcChannel::kAsked) {
        asked_.push_back(channel_.question);
        channel_.answer = {};
        channel_.state = XrcChannel::kAnswered;
      }
      usleep(100);
    }
  }

  XrcChannel& channel_;
  std::vector<XrcQuestion> asked_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// The owner may have executed an atomic whose answer came too late. The peer
// may repeat an earlier Read before it.
void question__that_has_no_answer__keeps_its_number_beside_other_questions(void**) {
  Domain domain;
  XrcForeign foreign(domain.shared.get());
  uint64_t original = 0;
  assert_int_equal(foreign.compare_swap(kWho, 1, 64, 2, 3, original), Fault::kLater);
  const uint32_t number = domain.channel_to_other().question.sequence;
  std::vector<XrcQuestion> asked;
  {
    Answers answers(domain.channel_to_other());
    std::byte bytes[8];
    while (foreign.read(kWho, {1, 0, sizeof bytes}, bytes) == Fault::kLater) usleep(1000);
    assert_int_equal(foreign.compare_swap(kWho, 1, 64, 2, 3, original), Fault::kNone);
    assert_int_equal(foreign.compare_swap(kWho, 1, 64, 2, 3, original), Fault::kNone);
    asked = answers.end();
  }
  assert_int_equal(asked.size(), 4);
  assert_int_equal(asked[0].sequence, number);
  assert_int_equal(asked[1].operation, XrcOperation::kRead);
  assert_int_equal(asked[2].sequence, number);
  // Another one that looks the same.
  assert_int_not_equal(asked[3].sequence, number);
}

// The atomic of the next connection is another one, even if it looks the same.
// A receive that the owner may have taken is not lost.
void reset__after_questions_without_an_answer__keeps_that_of_a_receive(void**) {
  Domain domain;
  XrcForeign foreign(domain.shared.get());
  dapple::roce::WholeReceiveRequest request;
  uint64_t original = 0;
  std::vector<XrcQuestion> asked;
  assert_int_equal(foreign.compare_swap(kWho, 1, 64, 2, 3, original), Fault::kLater);
  const uint32_t atomic = domain.channel_to_other().question.sequence;
  foreign.reset();
  {
    Answers answers(domain.channel_to_other());
    while (foreign.compare_swap(kWho, 1, 64, 2, 3, original) == Fault::kLater) usleep(1000);
    asked = answers.end();
  }
  assert_int_equal(asked.size(), 2);
  assert_int_equal(asked[0].sequence, atomic);
  assert_int_not_equal(asked[1].sequence, atomic);
  assert_false(foreign.take(kOtherNumber, kWho.qpn, request));
  const uint32_t take = domain.channel_to_other().question.sequence;
  foreign.reset();
  {
    const Answers answers(domain.channel_to_other());
    while (domain.channel_to_other().state != XrcChannel::kAnswered) usleep(1000);
    // The answer has no receive.
    assert_false(foreign.take(kOtherNumber, kWho.qpn, request));
  }
  assert_int_equal(domain.channel_to_other().question.sequence, take);
}

XrcNotice closing(uint32_t qpn) {
  return {.kind = XrcNoticeKind::kCloseQp, .qpn = qpn};
}
// What the other member finds in its channel.
std::vector<XrcNotice> take_notices(Domain& domain) {
  XrcChannel& channel = domain.channel_to_other();
  std::vector<XrcNotice> taken;
  for (; channel.read != channel.written; ++channel.read)
    taken.push_back(channel.notices[channel.read % XrcChannel::kNotices]);
  if (channel.wants_room.exchange(0) != 0) domain.shared->send_waiting(kOther);
  return taken;
}

// Notices behind a full ring wait, and keep their order.
void notices__without_a_place__come_when_there_is_one(void**) {
  constexpr uint32_t kMore = 3 * XrcChannel::kNotices;
  constexpr uint32_t kLeaving = 1'000'000;
  Domain domain;
  for (uint32_t i = 0; i < kMore; ++i) assert_true(domain.shared->keep_notice(kOther));
  // A queue pair that the member knows.
  XrcForeign foreign(domain.shared.get());
  std::byte bytes[8];
  assert_int_equal(foreign.read({kWho.domain, kLeaving}, {1, 0, sizeof bytes}, bytes), Fault::kLater);
  for (uint32_t i = 0; i < kMore; ++i) domain.shared->tell(kOther, closing(i));
  foreign.leave();
  std::vector<XrcNotice> all;
  for (std::vector<XrcNotice> taken = take_notices(domain); !taken.empty(); taken = take_notices(domain))
    all.insert(all.end(), taken.begin(), taken.end());
  assert_int_equal(all.size(), kMore + 1);
  for (uint32_t i = 0; i < kMore; ++i) {
    assert_int_equal(all[i].kind, XrcNoticeKind::kCloseQp);
    assert_int_equal(all[i].qpn, i);
  }
  assert_int_equal(all[kMore].kind, XrcNoticeKind::kLeave);
  assert_int_equal(all[kMore].qpn, kLeaving);
}

// A queue pair keeps memory for one notice, and has several types of events.
void events__without_a_place__wait_as_one_of_each_type(void**) {
  Domain domain;
  for (uint32_t i = 0; i < XrcChannel::kNotices; ++i) {
    assert_true(domain.shared->keep_notice(kOther));
    domain.shared->tell(kOther, closing(i));
  }
  assert_true(domain.shared->keep_notice(kOther));
  for (const uint32_t type : {5u, 2u, 5u}) domain.shared->tell_event(kOther, 7, type);
  domain.shared->drop_notice(kOther);
  assert_int_equal(take_notices(domain).size(), XrcChannel::kNotices);
  const std::vector<XrcNotice> events = take_notices(domain);
  assert_int_equal(events.size(), 2);
  assert_int_equal(events[0].value, 2);
  assert_int_equal(events[1].value, 5);
}

// The member must see what came before a question, for example the end of an
// earlier queue pair with the same number.
void question__behind_notices_without_a_place__waits(void**) {
  Domain domain;
  for (uint32_t i = 0; i < XrcChannel::kNotices + 1; ++i) {
    assert_true(domain.shared->keep_notice(kOther));
    domain.shared->tell(kOther, closing(i));
  }
  XrcQuestion question = {.operation = XrcOperation::kTake, .sequence = next_question(), .qpn = 7};
  XrcAnswer answer;
  assert_int_equal(domain.shared->ask(kOther, question, nullptr, answer, nullptr), SharedXrcDomain::Asked::kBusy);
  assert_int_equal(domain.channel_to_other().state.load(), XrcChannel::kIdle);
  take_notices(domain);
  assert_int_equal(domain.shared->ask(kOther, question, nullptr, answer, nullptr), SharedXrcDomain::Asked::kLater);
  assert_int_equal(domain.channel_to_other().question.notices, XrcChannel::kNotices + 1);
}

// Receives take at most a part of the ring: their ends may depend on a question
// that must follow a notice.
void reserve__for_all_receives__leaves_places(void**) {
  Domain domain;
  uint32_t reserved = 0;
  while (domain.shared->reserve(kOther)) reserved++;
  assert_int_equal(reserved, XrcChannel::kMaxReserved);
  assert_true(domain.shared->keep_notice(kOther));
  domain.shared->tell(kOther, closing(1));
  assert_int_equal(take_notices(domain).size(), 1);
  while (reserved-- > 0) domain.shared->give_back(kOther);
}

// Another member can write to the whole board.
void numbers__after_another_member_has_changed_the_row__stay_within_it(void**) {
  Domain domain;
  domain.row_of(domain.shared->self()).first_number = kFirst - 100 * kXrcNumbers;
  const uint64_t numbers = domain.row_of(2).numbers[0];
  domain.shared->publish(kFirst + 3);
  assert_int_equal(domain.row_of(domain.shared->self()).numbers[0], 1u << 3);
  assert_int_equal(domain.row_of(2).numbers[0], numbers);
  domain.shared->withdraw(kFirst + 3);
  assert_int_equal(domain.row_of(domain.shared->self()).numbers[0], 0);
}

// A thread that is cancelled while it has a lock would keep it.
void join__of_a_thread_that_is_to_end__ends_before(void**) {
  Domain domain;
  std::atomic<bool> has_joined{false};
  std::thread([&] {
    pthread_cancel(pthread_self());
    Problem problem;
    has_joined = SharedXrcDomain::join(domain.memory(), 1, kFirst, problem) != nullptr;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }).join();
  assert_true(has_joined);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(question__that_has_no_answer__keeps_its_number_beside_other_questions),
      cmocka_unit_test(reset__after_questions_without_an_answer__keeps_that_of_a_receive),
      cmocka_unit_test(notices__without_a_place__come_when_there_is_one),
      cmocka_unit_test(events__without_a_place__wait_as_one_of_each_type),
      cmocka_unit_test(question__behind_notices_without_a_place__waits),
      cmocka_unit_test(reserve__for_all_receives__leaves_places),
      cmocka_unit_test(numbers__after_another_member_has_changed_the_row__stay_within_it),
      cmocka_unit_test(join__of_a_thread_that_is_to_end__ends_before),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
