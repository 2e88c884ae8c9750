// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Threads that are cancelled while they call the emulator: verbs and syncs are not cancellation points. The last test
// is about errno.
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "provider/emulator/emulator.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/emulated_child.hpp"

using namespace dapple::provider;

namespace {

void must(bool condition, int code) {
  if (!condition) _exit(code);
}

// Runs this in a thread with a cancellation that waits.
void cancelled(void (*work)()) {
  const auto run = [](void* to_do) -> void* {
    pthread_cancel(pthread_self());
    reinterpret_cast<void (*)()>(to_do)();
    pthread_testcancel();
    return nullptr;
  };
  pthread_t thread;
  must(pthread_create(&thread, nullptr, run, reinterpret_cast<void*>(work)) == 0, 103);
  void* result = nullptr;
  must(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, 104);
}

ibv_context context;
ibv_qp qp;
bool has_posted;

void post() {
  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  // A provider may write to its device.
  const auto provider_post_send = [](ibv_qp*, ibv_send_wr*, ibv_send_wr**) {
    pthread_testcancel();
    errno = ENOMEM;
    return 0;
  };
  const auto find = [](const ibv_context*, const ibv_sge&, iovec*) { return false; };
  const auto signals_all = [](ibv_qp*) { return true; };
  const int error =
      Emulator::running()->transfers()->post_send(&qp, &request, &bad, {provider_post_send, find, signals_all});
  has_posted = error == 0 && errno == ENOMEM;
}

void post_send__is_no_cancellation_point(void**) {
  const auto work = [] {
    qp.context = &context;
    cancelled(post);
    must(has_posted, 105);
    Emulator::running()->transfers()->emptied(&qp);
    _exit(0);
  };
  assert_int_equal(status_of(work), 0);
}

ShadowRegion* region;

void change_on_both_sides() {
  region->view[100] = 1;
  memory[101] = 1;
  Emulator::running()->shadow().clean(reinterpret_cast<uintptr_t>(memory), 4096);
}

void deregistered__is_no_cancellation_point(void**) {
  const auto work = [] {
    region = static_cast<ShadowRegion*>(register_memory(0, 4096));
    change_on_both_sides();
    cancelled([] { Emulator::running()->deregistered(region); });
    must(Emulator::running()->shadow().num_regions() == 0, 105);
    _exit(0);
  };
  assert_int_equal(status_of(work), 0);
}

// The sync ends the wait of a region that was deregistered, which has a finding by now.
void sync_late() {
  region->view[200] = 1;
  memory[201] = 1;
  void* const state = region;
  Emulator::running()->deregistered(state);
  Emulator::running()->shadow().clean_invalidate(reinterpret_cast<uintptr_t>(memory), 4096);
}

void sync__is_no_cancellation_point(void**) {
  const auto work = [] {
    region = static_cast<ShadowRegion*>(register_memory(0, 4096));
    cancelled(sync_late);
    must(Emulator::running()->shadow().num_pages() == 0, 105);
    _exit(0);
  };
  assert_int_equal(status_of(work), 0);
  assert_non_null(strstr(said, "lost to the write-back"));
}

void sync__leaves_errno_alone(void**) {
  const auto work = [] {
    region = static_cast<ShadowRegion*>(register_memory(0, 4096));
    close(STDERR_FILENO);
    errno = ENOENT;
    sync_late();
    _exit(errno == ENOENT ? 0 : 105);
  };
  assert_int_equal(status_of(work), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(post_send__is_no_cancellation_point),
      cmocka_unit_test(deregistered__is_no_cancellation_point),
      cmocka_unit_test(sync__is_no_cancellation_point),
      cmocka_unit_test(sync__leaves_errno_alone),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
