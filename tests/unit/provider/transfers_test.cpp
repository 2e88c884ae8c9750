// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's watch over sent data; the test acts as the program and the device.
#include "provider/emulator/transfers.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;

namespace {

using When = TransferFinding::When;

constexpr size_t kPage = Shadow::kPage;
constexpr uint32_t kOurKey = 7;
unsigned char* program;
ibv_context context;
std::vector<TransferFinding> found;

uintptr_t at(size_t offset) {
  return reinterpret_cast<uintptr_t>(program) + offset;
}

// The provider. It accepts requests until its queue is full.
int room;
bool all_signalled;

int provider_post_send(ibv_qp*, ibv_send_wr* requests, ibv_send_wr** bad) {
  for (ibv_send_wr* request = requests; request != nullptr; request = request->next) {
    if (room-- > 0) continue;
    *bad = request;
    return ENOMEM;
  }
  return 0;
}

bool find(const ibv_context* of, const ibv_sge& segment, iovec* range) {
  if (of != &context || segment.lkey != kOurKey) return false;
  *range = {reinterpret_cast<void*>(segment.addr), segment.length};
  return true;
}

bool signals_all(ibv_qp*) {
  return all_signalled;
}

ibv_wc completion;  // the next

constexpr TransferMeans kMeans = {provider_post_send, find, signals_all};

// A region of two pages, and a queue pair.
struct Rig {
  Rig() {
    program = static_cast<unsigned char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    assert_null(shadow.open([](const ShadowFindings&) {}, kPage));
    assert_int_equal(shadow.add(at(0), 2 * kPage, false, &region), 0);
    shadow.registered(region);
    qp.context = cq.context = &context;
    qp.qp_num = 17;
    room = 1000;
    all_signalled = false;
    found.clear();
  }
  ~Rig() {
    shadow.remove(region);
    munmap(program, 2 * kPage);
  }

  int post(uint64_t wr_id, size_t offset, uint32_t length, unsigned flags = IBV_SEND_SIGNALED,
           ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_sge segment = {at(offset), length, kOurKey};
    ibv_send_wr request = {};
    request.wr_id = wr_id;
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return transfers.post_send(&qp, &request, &bad, kMeans);
  }
  void complete(uint64_t wr_id, ibv_wc_opcode opcode = IBV_WC_SEND, ibv_wc_status status = IBV_WC_SUCCESS) {
    completion = {};
    completion.wr_id = wr_id;
    completion.opcode = opcode;
    completion.status = status;
    completion.qp_num = qp.qp_num;
    poll([](ibv_cq*, int, ibv_wc* done) { return *done = completion, 1; });
  }
  int poll(int (*poll_cq)(ibv_cq*, int, ibv_wc*)) {
    ibv_wc done;
    return transfers.poll(&cq, 1, &done, poll_cq);
  }

  Shadow shadow;
  ShadowRegion* region = nullptr;
  ibv_qp qp = {};
  ibv_cq cq = {};
  Transfers transfers{shadow, [](const TransferFinding& finding) { found.push_back(finding); }};
};

void post__bytes_that_no_sync_has_cleaned(void**) {
  Rig rig;
  program[100] = program[102] = 1;
  assert_int_equal(rig.post(5, 64, 64), 0);
  assert_int_equal(found.size(), 1);
  assert_true(found[0].when == When::kAtPost);
  assert_int_equal(found[0].wr_id, 5);
  assert_int_equal(found[0].qp_num, 17);
  assert_int_equal(found[0].address, at(64));
  assert_int_equal(found[0].length, 64);
  assert_int_equal(found[0].changed.count, 2);
  assert_int_equal(found[0].changed.first, at(100));
  // It has been reported.
  rig.complete(5);
  assert_int_equal(found.size(), 1);
  // Nobody uses its neighbours in the line.
  assert_int_equal(rig.post(6, 64, 36), 0);
  rig.shadow.clean(at(64), 64);
  assert_int_equal(rig.post(7, 64, 64, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE), 0);
  assert_int_equal(found.size(), 1);
}

void completion__bytes_that_changed_before_it(void**) {
  Rig rig;
  assert_int_equal(rig.post(1, 0, 64), 0);
  assert_int_equal(rig.post(2, 64, 64), 0);
  program[64] = 1;
  rig.complete(1);
  assert_int_equal(found.size(), 0);
  rig.complete(2);
  assert_int_equal(found.size(), 1);
  assert_true(found[0].when == When::kBeforeCompletion);
  assert_int_equal(found[0].wr_id, 2);
  // Afterwards it belongs to the program.
  program[0] = 1;
  rig.complete(3);
  assert_int_equal(found.size(), 1);
}

void innocent__what_the_device_does_not_read(void**) {
  Rig rig;
  program[0] = 1;
  assert_int_equal(rig.post(1, 0, 64, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
  assert_int_equal(rig.post(2, 0, 64, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ), 0);
  assert_int_equal(rig.post(3, 0, 8, IBV_SEND_SIGNALED, IBV_WR_ATOMIC_FETCH_AND_ADD), 0);
  rig.complete(1);
  rig.complete(2, IBV_WC_RDMA_READ);
  rig.complete(3, IBV_WC_FETCH_ADD);
  assert_int_equal(found.size(), 0);
}

// A program may know from its peer's answer that the device is done.
void unsignalled__has_no_end(void**) {
  Rig rig;
  assert_int_equal(rig.post(1, 0, 64, 0), 0);
  assert_int_equal(rig.post(2, 64, 64), 0);
  program[0] = 1;
  rig.complete(2);
  assert_int_equal(found.size(), 0);
  // If the queue pair signals all requests, each has a completion.
  rig.transfers.emptied(&rig.qp);
  rig.shadow.clean(at(0), 64);
  all_signalled = true;
  assert_int_equal(rig.post(3, 0, 64, 0), 0);
  program[0] = 2;
  rig.complete(3);
  assert_int_equal(found.size(), 1);
}

void refused__is_forgotten(void**) {
  Rig rig;
  room = 1;
  assert_int_equal(rig.post(1, 0, 64), 0);
  assert_int_equal(rig.post(2, 64, 64), ENOMEM);
  room = 1;
  assert_int_equal(rig.post(3, 128, 64), 0);
  program[128] = 1;
  rig.complete(1);
  rig.complete(3);
  assert_int_equal(found.size(), 1);
  assert_int_equal(found[0].wr_id, 3);
}

// Receives, failures, completions of requests that were posted in another way, and reset queue pairs.
void completions__of_others(void**) {
  Rig rig;
  assert_int_equal(rig.post(1, 0, 64), 0);
  program[0] = 1;
  rig.complete(1, IBV_WC_RECV);
  assert_int_equal(found.size(), 0);
  rig.complete(9, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
  rig.complete(1);
  assert_int_equal(found.size(), 0);
  rig.shadow.clean(at(0), 64);
  assert_int_equal(rig.post(1, 0, 64), 0);
  program[0] = 2;
  rig.complete(4);
  rig.complete(1);
  assert_int_equal(found.size(), 0);
  rig.shadow.clean(at(0), 64);
  assert_int_equal(rig.post(1, 0, 64), 0);
  program[0] = 3;
  rig.transfers.emptied(&rig.qp);
  rig.complete(1);
  assert_int_equal(found.size(), 0);
}

std::atomic<pid_t> other_thread;
std::atomic<bool> other_has_polled;

// True if the thread waits in the kernel.
bool is_asleep(pid_t thread) {
  char name[64];
  char text[512] = "";
  snprintf(name, sizeof name, "/proc/self/task/%d/stat", thread);
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_read = read(file, text, sizeof text - 1) > 0;
  close(file);
  const char* state = strrchr(text, ')');
  return is_read && state != nullptr && state[2] == 'S';
}

Rig* rig_of_both;
pthread_t other;

// After the poll the second buffer belongs to the program.
void* poll_second_and_use_its_buffer(void*) {
  other_thread = gettid();
  rig_of_both->poll([](ibv_cq*, int, ibv_wc* done) { return *done = completion, 1; });
  program[64] = 1;
  other_has_polled = true;
  return nullptr;
}

// Another thread polls the second completion, or waits for this poll, before this thread goes on with the first.
int give_first(ibv_cq*, int, ibv_wc* done) {
  *done = completion;
  assert_int_equal(pthread_create(&other, nullptr, poll_second_and_use_its_buffer, nullptr), 0);
  while (!other_has_polled && (other_thread == 0 || !is_asleep(other_thread))) sched_yield();
  return 1;
}

void completions__of_two_threads_in_the_devices_order(void**) {
  Rig rig;
  rig_of_both = &rig;
  assert_int_equal(rig.post(1, 0, 64), 0);
  assert_int_equal(rig.post(1, 64, 64), 0);
  completion = {};
  completion.wr_id = 1;
  completion.qp_num = rig.qp.qp_num;
  rig.poll(give_first);
  assert_int_equal(pthread_join(other, nullptr), 0);
  assert_int_equal(found.size(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(post__bytes_that_no_sync_has_cleaned),
      cmocka_unit_test(completion__bytes_that_changed_before_it),
      cmocka_unit_test(innocent__what_the_device_does_not_read),
      cmocka_unit_test(unsignalled__has_no_end),
      cmocka_unit_test(refused__is_forgotten),
      cmocka_unit_test(completions__of_others),
      cmocka_unit_test(completions__of_two_threads_in_the_devices_order),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
