// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// XRC domains of files: their limits, the threads that open them, and files that do not answer. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "provider/soft/xrc/domain_memory.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/hung_file.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/native/verbs/xrc_domain.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

// The end of a process that waits without an end, in seconds.
constexpr unsigned kPatienceS = 60;

template <typename Body>
void check(const char* name, Body body) {
  fprintf(stderr, "%s\n", name);
  const pid_t process = start_process([body] {
    alarm(kPatienceS);
    return body();
  });
  if (!ends_with(process, 0)) failed(name);
}

// Each other process of the domain keeps something for each queue pair.
int reach_the_limit() {
  ibv_context* context = open_loopback();
  ibv_xrcd* domain = open_domain(context, memfd_create("domain", 0), O_CREAT);
  MUST(domain != nullptr);
  std::vector<ibv_qp*> targets;
  for (uint32_t i = 0; i < soft::kMaxXrcGuests; ++i) {
    targets.push_back(make_receiver(domain));
    MUST(targets.back() != nullptr);
  }
  MUST(make_receiver(domain) == nullptr && errno == ENOMEM);
  MUST(ibv_destroy_qp(targets.back()) == 0);
  targets.back() = make_receiver(domain);
  MUST(targets.back() != nullptr);
  MUST(make_receiver(domain) == nullptr && errno == ENOMEM);
  // Another domain has room.
  ibv_xrcd* own = open_domain(context, -1, O_CREAT);
  MUST(own != nullptr);
  targets.push_back(make_receiver(own));
  MUST(targets.back() != nullptr);
  for (ibv_qp* each : targets) MUST(ibv_destroy_qp(each) == 0);
  MUST(ibv_close_xrcd(own) == 0 && ibv_close_xrcd(domain) == 0 && ibv_close_device(context) == 0);
  return 0;
}

// Verbs are not cancellation points: a thread that ended in one would keep its locks.
int be_cancelled() {
  ibv_context* context = open_loopback();
  const int files[] = {memfd_create("first", 0), memfd_create("second", 0)};
  ibv_xrcd* opened = nullptr;
  std::atomic<bool> has_opened{false}, has_closed{false};
  const auto run_cancelled = [](auto call) {
    std::thread([&] {
      pthread_cancel(pthread_self());
      call();
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    }).join();
  };
  run_cancelled([&] {
    opened = open_domain(context, files[0], O_CREAT);
    has_opened = true;
  });
  MUST(has_opened && opened != nullptr);
  ibv_xrcd* other = open_domain(context, files[1], O_CREAT);
  MUST(other != nullptr);
  run_cancelled([&] { has_closed = ibv_close_xrcd(opened) == 0; });
  MUST(has_closed);
  MUST(ibv_close_xrcd(other) == 0 && ibv_close_device(context) == 0);
  return 0;
}

// --- A hung file

// A process that ends closes the file, and waits for its server then.
struct Shared {
  std::atomic<int> turn{0};
  std::atomic<bool> ends{false};
};
Shared* shared;

// Takes its turn, and returns when the file's server has ended.
int end_turn(int turn) {
  shared->turn = turn;
  while (!shared->ends) usleep(10'000);
  return 0;
}

// Neither this process nor dappled asks the file's server.
int make_domain(int hung) {
  ibv_context* context = open_loopback();
  ibv_xrcd* domain = open_domain(context, hung, O_CREAT | O_EXCL);
  MUST(domain != nullptr);
  shared->turn = 1;
  MUST(await(kPatienceS, [] { return shared->turn == 2; }));
  MUST(ibv_close_xrcd(domain) == 0);
  return end_turn(3);
}

int find_domain(int hung) {
  ibv_context* context = open_loopback();
  MUST(await(kPatienceS, [] { return shared->turn == 1; }));
  ibv_xrcd* domain = open_domain(context, hung, 0);
  MUST(domain != nullptr);
  MUST(open_domain(context, hung, O_CREAT | O_EXCL) == nullptr && errno == EINVAL);
  shared->turn = 2;
  MUST(await(kPatienceS, [] { return shared->turn == 3; }));
  MUST(ibv_close_xrcd(domain) == 0);
  MUST(open_domain(context, hung, 0) == nullptr && errno == EAGAIN);
  return end_turn(4);
}

void a_hung_file() {
  fprintf(stderr, "a hung file\n");
  pid_t maker = -1, finder = -1;
  {
    const HungFile hung;
    const int fd = hung.fd();
    if (fd < 0) {
      fprintf(stderr, "SKIP a hung file: this user may mount no file system of its own\n");
      return;
    }
    maker = start_process([fd] { return make_domain(fd); });
    finder = start_process([fd] { return find_domain(fd); });
    if (!await(kPatienceS, [] { return shared->turn == 4; })) failed("a hung file");
    shared->ends = true;
  }
  if (!ends_with(maker, 0)) failed("the process that makes the domain of a hung file");
  if (!ends_with(finder, 0)) failed("the process that finds the domain of a hung file");
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  check("the limit", reach_the_limit);
  check("cancelled threads", be_cancelled);
  a_hung_file();
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
