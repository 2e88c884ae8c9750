// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/closed_pages.hpp"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::ClosedFor;
using dapple::soft::check::ClosedPages;
using dapple::soft::check::Look;
using dapple::soft::check::Pieces;

constexpr size_t kPages = 4;
const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

std::atomic<int> looks;
Look last;  // of a test with one thread
sigjmp_buf after_own_fault;

void tell(const Look& look) {
  if (looks.fetch_add(1) == 0) last = look;
}

struct sigaction of_check;

// cmocka has a handler of its own for each test.
void close(ClosedPages& pages, const Pieces& pieces, const ClosedFor& request = {}) {
  sigaction(SIGSEGV, &of_check, nullptr);
  pages.close(pieces, request);
}

// The program's own, which is older than the check's.
void on_own_fault(int) {
  siglongjmp(after_own_fault, 1);
}

volatile char* memory;

int set_up(void**) {
  looks = 0;
  memory =
      static_cast<char*>(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  assert_true(memory != MAP_FAILED);
  memory[0] = 1;
  return 0;
}

int tear_down(void**) {
  return munmap(const_cast<char*>(memory), kPages * kPage);
}

uintptr_t at(size_t offset) {
  return reinterpret_cast<uintptr_t>(memory) + offset;
}

Pieces piece(size_t offset, size_t size) {
  return {{at(offset), at(offset + size), 0}};
}

bool is_closed() {
  return ClosedPages::has(const_cast<char*>(memory), kPages * kPage);
}

Look::Kind kind(Look::Kind known) {
#if defined(__x86_64__)
  return known;
#else
  (void)known;
  return Look::Kind::kUnknown;
#endif
}

void close__look__is_told_once_and_goes_on(void**) {
  ClosedPages pages;
  ClosedFor request;
  request.is_receive = true;
  request.owner.qpn = 0x11;
  close(pages, piece(0, 2 * kPage), request);
  assert_true(ClosedPages::has(const_cast<char*>(memory), 1));
  assert_int_equal(memory[0], 1);
  memory[kPage] = 5;
  assert_int_equal(looks, 1);
  assert_true(last.address == at(0) && last.kind == kind(Look::Kind::kRead));
  assert_true(last.request.is_receive && last.request.owner.qpn == 0x11);
  pages.open();
  assert_true(pages.was_seen());
  assert_int_equal(memory[kPage], 5);
}

void close__write__is_told(void**) {
  ClosedPages pages;
  close(pages, piece(0, kPage));
  memory[7] = 3;
  assert_int_equal(looks, 1);
  assert_true(last.address == at(7) && last.kind == kind(Look::Kind::kWrite));
  assert_int_equal(memory[7], 3);
}

void close__pages_with_other_data__stay_open(void**) {
  ClosedPages pages;
  close(pages, piece(100, 3 * kPage));
  for (const size_t offset : {size_t{0}, kPage - 1, 3 * kPage}) memory[offset] = 2;
  assert_int_equal(looks, 0);
  assert_false(ClosedPages::has(const_cast<char*>(memory), kPage));
  assert_true(ClosedPages::has(const_cast<char*>(memory), kPage + 1));
  std::vector<std::pair<size_t, size_t>> parts;
  pages.for_each_open(reinterpret_cast<std::byte*>(at(100)), 3 * kPage,
                      [&](size_t offset, size_t size) { parts.emplace_back(offset, size); });
  assert_true((parts == std::vector<std::pair<size_t, size_t>>{{0, kPage - 100}, {3 * kPage - 100, 100}}));
}

void close__less_than_a_page__closes_nothing(void**) {
  ClosedPages pages;
  close(pages, piece(1, kPage));
  memory[kPage / 2] = 2;
  assert_int_equal(looks, 0);
  assert_false(is_closed());
}

void open__no_look__tells_nothing(void**) {
  {
    ClosedPages pages;
    close(pages, piece(0, kPage));
  }
  memory[0] = 2;
  assert_int_equal(looks, 0);
  assert_false(ClosedPages::has(const_cast<char*>(memory), kPage));
}

void close__memory_without_mapping__closes_nothing(void**) {
  munmap(const_cast<char*>(memory), kPages * kPage);
  ClosedPages pages;
  close(pages, piece(0, kPage));
  assert_false(is_closed());
}

void close__newer_handler_of_the_program__closes_nothing(void**) {
  struct sigaction before, own = {};
  own.sa_handler = on_own_fault;
  sigaction(SIGSEGV, &own, &before);
  ClosedPages pages;
  pages.close(piece(0, kPage), {});
  assert_false(is_closed());
  sigaction(SIGSEGV, &before, nullptr);
}

void on_fault__fault_of_the_program__goes_to_its_handler(void**) {
  ClosedPages pages;
  close(pages, piece(0, kPage));
  mprotect(const_cast<char*>(memory) + kPage, kPage, PROT_NONE);
  volatile bool has_faulted = false;
  if (sigsetjmp(after_own_fault, 1) == 0) {
    memory[kPage] = 1;
  } else {
    has_faulted = true;
  }
  assert_true(has_faulted);
  assert_int_equal(looks, 0);
}

void close__many_requests__closes_some(void**) {
  std::vector<std::unique_ptr<ClosedPages>> all;
  for (int i = 0; i < 1000; i++) close(*all.emplace_back(std::make_unique<ClosedPages>()), piece(0, kPage));
  assert_true(is_closed());
  all.clear();
  memory[0] = 1;
  assert_int_equal(looks, 0);
}

// A look may come at the same time as open().
void close__looks_of_many_threads__all_go_on(void**) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; i++) {
    threads.emplace_back([&stop, i] {
      while (!stop) {
        memory[i * kPage] = 1;
        (void)memory[3 * kPage];
      }
    });
  }
  int seen = 0;
  for (int i = 0; i < 2000 || (seen == 0 && i < 1000000); i++) {
    ClosedPages pages;
    close(pages, piece(0, kPages * kPage));
    if (i % 2 == 0) std::this_thread::yield();
    pages.open();
    if (pages.was_seen()) seen++;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  assert_int_equal(looks, seen);
}

void after_fork__child__opens_its_copy(void**) {
  ClosedPages pages;
  close(pages, piece(0, kPage));
  const pid_t child = fork();
  if (child == 0) {
    ClosedPages::after_fork_in_child();
    pages.open();
    _exit(memory[0] == 1 && looks == 0 ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

}  // namespace

int main() {
  struct sigaction own = {};
  own.sa_handler = on_own_fault;
  own.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &own, nullptr);
  ClosedPages::start(tell);
  sigaction(SIGSEGV, nullptr, &of_check);
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(close__look__is_told_once_and_goes_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__write__is_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__pages_with_other_data__stay_open, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__less_than_a_page__closes_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(open__no_look__tells_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__memory_without_mapping__closes_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__newer_handler_of_the_program__closes_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(on_fault__fault_of_the_program__goes_to_its_handler, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__many_requests__closes_some, set_up, tear_down),
      cmocka_unit_test_setup_teardown(close__looks_of_many_threads__all_go_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown(after_fork__child__opens_its_copy, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
