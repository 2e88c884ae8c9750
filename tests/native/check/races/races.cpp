// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// races rc|xrc|lossy[-hosts[-unchecked]] LATE NAME...: four programs, one of which has the memory that the others use,
// for dapple-run --check=races. They do their work in each of these cases. In the next case the next program has the
// memory. The names that begin with "raced-" have a race, the others none. The program with the role LATE is late; -1:
// none. With "-hosts" two of the programs are in another network namespace, and with "-unchecked" these two do without
// the check.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iterator>
#include <memory>
#include <string_view>

#include "tests/native/check/races/rank.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/namespaces.hpp"

using namespace dapple::tests;

namespace {

constexpr int kTarget = 0, kOne = 1, kTwo = 2, kThree = 3;
constexpr size_t kX = 0, kY = 64, kFlag = 128, kCount = 192, kLock = 256, kLong = 1024;
constexpr auto kNoWait = Rank::kNoWait, kUnsignaled = Rank::kUnsignaled;

using Work = bool (*)(Rank&);
bool idle(Rank&) {
  return true;
}
bool write_x(Rank& rank) {
  return rank.write(kTarget, kX);
}
bool read_x(Rank& rank) {
  return rank.read(kTarget, kX);
}
bool add_x(Rank& rank) {
  return rank.add(kTarget, kX, 1) != UINT64_MAX;
}
bool late_write_x(Rank& rank) {
  return rank.hear_posted() && write_x(rank);
}
bool write_x_and_tell(Rank& rank) {
  return write_x(rank) && rank.send(kTwo);
}
bool told_to_write_x(Rank& rank) {
  return rank.receive(kOne) && write_x(rank);
}
bool target_tells_to_write_x(Rank& rank) {
  return rank.receive(kTarget) && write_x(rank);
}

// One changes the lock by atomics alone, x in between.
bool write_x_locked(Rank& rank) {
  while (rank.swap(kTarget, kLock, 0, 1) != 0) usleep(1000);
  return write_x(rank) && rank.swap(kTarget, kLock, 1, 0) == 1;
}

struct Case {
  const char* name;
  Work work[kRanks];
};

const Case kCases[] = {
    {"raced-write-write", {idle, write_x, write_x, idle}},
    {"raced-write-read", {idle, write_x, read_x, idle}},
    {"raced-write-add", {idle, write_x, add_x, idle}},
    {"raced-add-long-read", {idle, add_x, [](Rank& rank) { return rank.read(kTarget, kX, 64); }, idle}},
    {"raced-overlap",
     {idle, [](Rank& rank) { return rank.write(kTarget, kLong, 5000); },
      [](Rank& rank) { return rank.write(kTarget, kLong + 4996, 8); }, idle}},
    // The message may overtake the Write.
    {"raced-told-too-early",
     {idle, [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait) && rank.send(kTwo); }, told_to_write_x, idle}},
    {"raced-told-by-other-too-early",
     {idle, [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait) && rank.send(kThree); },
      [](Rank& rank) { return rank.receive(kThree) && write_x(rank); },
      [](Rank& rank) { return rank.receive(kOne) && rank.send(kTwo); }}},
    {"raced-told-before", {idle, [](Rank& rank) { return rank.send(kTwo) && write_x(rank); }, told_to_write_x, idle}},
    {"raced-told-the-wrong-way",
     {idle, [](Rank& rank) { return write_x(rank) && rank.receive(kTwo); },
      [](Rank& rank) { return rank.send(kOne) && write_x(rank); }, idle}},
    {"raced-other-word",
     {idle, write_x, [](Rank& rank) { return rank.add(kTarget, kCount, 1) == 0 && write_x(rank); }, idle}},
    {"raced-two-queue-pairs",
     {idle,
      [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait, 1, 0) && rank.write(kTarget, kX, 8, kNoWait, 1, 1); },
      idle, idle}},
    // A Write that comes before the post may be what the program waits for.
    {"raced-own-send",
     {[](Rank& rank) { return rank.send(kThree, kX) && rank.say_posted(); }, late_write_x, idle,
      [](Rank& rank) { return rank.receive(kTarget); }}},
    {"raced-own-read",
     {[](Rank& rank) { return rank.read(kThree, kX, 8, kX) && rank.say_posted(); }, late_write_x, idle, idle}},
    {"raced-receive",
     {[](Rank& rank) { return rank.post_receive(kThree, kX) && rank.say_posted() && rank.await_message(kThree); },
      late_write_x, idle, [](Rank& rank) { return rank.send(kTarget); }}},
    {"raced-unlock-by-write",
     {idle,
      [](Rank& rank) {
        return rank.swap(kTarget, kLock, 0, 1) == 0 && rank.send(kTwo) && write_x(rank) &&
               rank.write(kTarget, kLock, 8, Rank::kWait, 0);
      },
      [](Rank& rank) {
        if (!rank.receive(kOne)) return false;
        for (int i = 0; i < 3; i++) (void)rank.swap(kTarget, kLock, 7, 7);
        return true;
      },
      idle}},

    {"apart", {idle, write_x, [](Rank& rank) { return rank.write(kTarget, kX + 8); }, idle}},
    {"reads", {idle, read_x, read_x, read_x}},
    {"adds", {idle, add_x, add_x, add_x}},
    {"one-queue-pair",
     {idle, [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait) && write_x(rank) && read_x(rank); }, idle,
      idle}},
    {"told", {idle, write_x_and_tell, told_to_write_x, idle}},
    {"told-to-read", {idle, write_x_and_tell, [](Rank& rank) { return rank.receive(kOne) && read_x(rank); }, idle}},
    {"told-by-other",
     {idle, [](Rank& rank) { return write_x(rank) && rank.send(kThree); },
      [](Rank& rank) { return rank.receive(kThree) && write_x(rank); },
      [](Rank& rank) { return rank.receive(kOne) && rank.send(kTwo); }}},
    {"barrier",
     {idle, [](Rank& rank) { return write_x(rank) && rank.send(kThree) && rank.receive(kThree); },
      [](Rank& rank) { return rank.send(kThree) && rank.receive(kThree) && write_x(rank); },
      [](Rank& rank) { return rank.receive(kOne) && rank.receive(kTwo) && rank.send(kOne) && rank.send(kTwo); }}},
    // The queue pair executes the Write before the message.
    {"target-polls",
     {[](Rank& rank) { return rank.receive(kOne) && rank.send(kTwo); },
      [](Rank& rank) { return rank.write(kTarget, kX, 8, kUnsignaled) && rank.send(kTarget); }, target_tells_to_write_x,
      idle}},
    {"target-polls-immediate",
     {[](Rank& rank) { return rank.receive(kOne) && rank.send(kTwo); },
      [](Rank& rank) { return rank.write_with_immediate(kTarget, kX); }, target_tells_to_write_x, idle}},
    {"target-looks-at-flag",
     {[](Rank& rank) { return rank.waits_for(kFlag, 5) && rank.send(kTwo); },
      [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait) && rank.write(kTarget, kFlag, 8, kNoWait, 5); },
      target_tells_to_write_x, idle}},
    {"flag-of-target",
     {[](Rank& rank) {
        if (!rank.receive(kOne)) return false;
        rank.word(kFlag) = 1;
        return true;
      },
      [](Rank& rank) { return write_x(rank) && rank.send(kTarget); },
      [](Rank& rank) {
        do {
          if (!rank.read(kTarget, kFlag)) return false;
        } while (rank.word(Rank::kScratch) == 0);
        return write_x(rank);
      },
      idle}},
    {"count-of-target",
     {idle,
      [](Rank& rank) {
        return rank.write(kTarget, kX, 8, kNoWait) && rank.add(kTarget, kCount, 1, kNoWait) != UINT64_MAX;
      },
      [](Rank& rank) {
        while (rank.add(kTarget, kCount, 0) == 0) usleep(1000);
        return write_x(rank);
      },
      idle}},
    {"lock", {idle, write_x_locked, write_x_locked, write_x_locked}},
    {"look-at-count",
     {idle, [](Rank& rank) { return rank.add(kTarget, kCount, 1) != UINT64_MAX; },
      [](Rank& rank) { return rank.read(kTarget, kCount) && rank.read(kTarget, kCount); }, idle}},
    {"later-completion",
     {idle,
      [](Rank& rank) { return rank.write(kTarget, kX, 8, kUnsignaled) && rank.write(kTarget, kY) && rank.send(kTwo); },
      told_to_write_x, idle}},
    {"answer-into-sent-buffer",
     {[](Rank& rank) { return rank.send(kOne, kX, kNoWait) && rank.waits_for(kX, 9); },
      [](Rank& rank) { return rank.receive(kTarget) && rank.write(kTarget, kX, 8, Rank::kWait, 9); }, idle, idle}},
    {"own-read-told",
     {[](Rank& rank) { return rank.read(kThree, kX, 8, kX) && rank.send(kTwo); }, idle, target_tells_to_write_x, idle}},
    {"own-send-of-written",
     {[](Rank& rank) { return rank.receive(kOne) && rank.send(kThree, kX); },
      [](Rank& rank) { return rank.write(kTarget, kX, 8, kNoWait) && rank.send(kTarget); }, idle,
      [](Rank& rank) { return rank.receive(kTarget); }}},
    {"receive-told",
     {[](Rank& rank) { return rank.take_at(kThree, kX) && rank.send(kTwo); }, idle, target_tells_to_write_x,
      [](Rank& rank) { return rank.send(kTarget); }}},
    {"receive-after-write",
     {[](Rank& rank) { return rank.receive(kOne) && rank.take_at(kThree, kX); },
      [](Rank& rank) { return write_x(rank) && rank.send(kTarget); }, idle,
      [](Rank& rank) { return rank.send(kTarget); }}},
};

const Case* find(const char* name) {
  const auto* found = std::begin(kCases);
  while (found != std::end(kCases) && strcmp(found->name, name) != 0) found++;
  return found == std::end(kCases) ? nullptr : found;
}

int run(RankMeeting& meeting, int number, Rank::Kind kind, int space, int late, int count, char** names) {
  auto rank = std::make_unique<Rank>(meeting, number, kind, space);
  if (!rank->open()) return 77;
  for (int i = 0; i < count; i++) {
    const int role = rank->begin(i);
    if (role == late) usleep(20000);
    const bool good = find(names[i])->work[role](*rank);
    if (!good) printf("program %d of %s fails\n", role, names[i]);
    fflush(stdout);
    if (!rank->end() || !good) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && strcmp(words[1], "names") == 0) {
    for (const Case& one : kCases) puts(one.name);
    return 0;
  }
  const int cases = count - 3;
  if (cases < 1 || cases > static_cast<int>(kMaxCases)) return 2;
  for (int i = 0; i < cases; i++) {
    if (find(words[i + 3]) == nullptr) return 2;
  }
  const std::string_view word = words[1];
  const Rank::Kind kind = word.starts_with("xrc")     ? Rank::Kind::kXrc
                          : word.starts_with("lossy") ? Rank::Kind::kLossyRc
                                                      : Rank::Kind::kRc;
  auto* meeting = prepare_stage<RankMeeting>();
  int space = -1;
  if (word.find("-hosts") != std::string_view::npos) {
    // The pair of the last run may still be there.
    need_new_namespace();
    space = make_veth_pair().other;
    if (space == -1) skip_program("no pair of network devices can be made");
  }
  pid_t programs[kRanks];
  const bool is_checked = !word.ends_with("-unchecked");
  for (int i = 0; i < kRanks; i++) {
    programs[i] = start_process([&] {
      if (!is_checked && i % 2 != 0) unsetenv("DAPPLE_CHECK");
      return run(*meeting, i, kind, space, atoi(words[2]), cases, words + 3);
    });
  }
  for (const pid_t program : programs) {
    if (!ends_with(program, 0)) failed("a program");
  }
  if (failures() == 0) puts("all went as planned");
  return failures() == 0 ? 0 : 1;
}
