// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The door of rdma_cm beside a fake dappled: opening and commands.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "provider/protocol/cm_commands.hpp"
#include "tests/native/doors/rdma_cm_rig.hpp"

using namespace dapple::tests;

namespace {

void open__is_a_character_device(void**) {
  struct stat by_name;
  struct stat by_fd;
  const int fd = open_channel(O_NONBLOCK);
  assert_int_equal(stat(kPath, &by_name), 0);
  assert_int_equal(fstat(fd, &by_fd), 0);
  assert_true(S_ISCHR(by_name.st_mode) && S_ISCHR(by_fd.st_mode));
  assert_int_equal(by_name.st_rdev, by_fd.st_rdev);
  assert_int_equal(access(kPath, R_OK | W_OK), 0);
  assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
  assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  char text[8] = "";
  FILE* abi = fopen("/sys/class/misc/rdma_cm/abi_version", "r");
  assert_non_null(abi);
  assert_non_null(fgets(text, sizeof text, abi));
  fclose(abi);
  assert_string_equal(text, "4\n");
  close(fd);
}

void open__without_descriptors_is_emfile(void**) {
  rlimit before;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = open_channel();
  for (rlim_t room = 0; room < 3; room++) {
    const rlimit few = {static_cast<rlim_t>(next) + 1 + room, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    errno = 0;
    const int fd = open(kPath, O_RDWR | O_CLOEXEC);
    const int error = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (fd >= 0) close(fd);
    if (room < 2) assert_true(fd < 0 && error == EMFILE);
  }
  assert_true(works(next));
  close(next);
}

void write__malformed_is_refused_as_by_the_kernel(void**) {
  const int fd = open_channel();
  const int asked = state->commands;
  rdma_ucm_create_id_resp response;
  Command<rdma_ucm_create_id> good = {{RDMA_USER_CM_CMD_CREATE_ID, sizeof good.body, sizeof response}, {}};
  good.body.response = reinterpret_cast<uintptr_t>(&response);
  auto error_of = [fd](const void* bytes, size_t size) {
    errno = 0;
    return write(fd, bytes, size) == -1 ? errno : 0;
  };
  assert_int_equal(error_of(&good, sizeof good.header - 1), EINVAL);
  assert_int_equal(error_of(&good, sizeof good - 1), EINVAL);
  auto bad = good;
  bad.header.cmd = 4711;
  assert_int_equal(error_of(&bad, sizeof bad), EINVAL);
  bad.header.cmd = RDMA_USER_CM_CMD_GET_OPTION;
  assert_int_equal(error_of(&bad, sizeof bad), ENOSYS);
  bad = good;
  bad.header.out = sizeof response - 1;
  assert_int_equal(error_of(&bad, sizeof bad), ENOSPC);
  bad = good;
  bad.body.response = 0;
  assert_int_equal(error_of(&bad, sizeof bad), EFAULT);
  const rdma_ucm_cmd_hdr connect = {RDMA_USER_CM_CMD_CONNECT, 8, 0};
  assert_int_equal(error_of(&connect, sizeof connect), EINVAL);

  // Half of the command and half of the response are on an unmapped page; another page is read-only.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  assert_ptr_not_equal(pages, MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
  char* half = pages + page - sizeof good / 2;
  memcpy(half, &good, sizeof good / 2);
  assert_int_equal(error_of(half, sizeof good), EFAULT);
  assert_int_equal(error_of(pages + page, sizeof good), EFAULT);
  bad.body.response = reinterpret_cast<uintptr_t>(pages + page - 2);
  assert_int_equal(error_of(&bad, sizeof bad), EFAULT);
  assert_int_equal(mprotect(pages + page, page, PROT_READ), 0);
  bad.body.response = reinterpret_cast<uintptr_t>(pages + page);
  assert_int_equal(error_of(&bad, sizeof bad), EFAULT);
  munmap(pages, 2 * page);

  assert_int_equal(state->commands, asked);
  assert_int_equal(error_of(&good, sizeof good), 0);
  close(fd);
}

void write__stores_the_response_and_nothing_behind_it(void**) {
  const int fd = open_channel();
  uint32_t response[2] = {0, 0x5A5A5A5A};
  Command<rdma_ucm_create_id> command = {{RDMA_USER_CM_CMD_CREATE_ID, sizeof command.body, 4}, {}};
  command.body.response = reinterpret_cast<uintptr_t>(response);
  // Bytes behind the command do not belong to it.
  char bytes[sizeof command + 100] = {};
  memcpy(bytes, &command, sizeof command);
  errno = 77;
  assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
  assert_int_equal(errno, 77);
  assert_int_not_equal(response[0], 0);
  assert_int_equal(response[1], 0x5A5A5A5A);
  assert_int_equal(state->length, sizeof command);
  assert_int_equal(state->channel.number, last_channel());
  state->fail = EADDRINUSE;
  assert_int_equal(write(fd, &command, sizeof command), -1);
  assert_int_equal(errno, EADDRINUSE);
  close(fd);
}

void write__pads_an_older_struct(void**) {
  const int fd = open_channel();
  Command<rdma_ucm_connect> command = {};
  command.header = {RDMA_USER_CM_CMD_CONNECT, offsetof(rdma_ucm_connect, ece), 0};
  command.body.id = 5;
  command.body.ece.vendor_id = 0xFFFFFFFF;
  const size_t size = sizeof command.header + offsetof(rdma_ucm_connect, ece);
  assert_int_equal(write(fd, &command, size), size);
  command.header.in = sizeof command.body;
  command.body.ece.vendor_id = 0;
  assert_int_equal(state->length, sizeof command);
  assert_memory_equal(state->command, &command, sizeof command);
  close(fd);
}

// The commands of Linux 6.17.
void write__carries_a_programs_event(void**) {
  const int fd = open_channel();
  Command<dapple::soft::CmWriteEventCommand> command = {};
  command.header = {dapple::soft::kCmWriteEvent, sizeof command.body, 0};
  command.body.id = 5;
  command.body.event = 18;
  command.body.argument = 0x0123456789abcdef;
  assert_int_equal(write(fd, &command, sizeof command), sizeof command);
  assert_int_equal(state->length, sizeof command);
  assert_memory_equal(state->command, &command, sizeof command);
  Command<dapple::soft::CmIbServiceCommand> service = {};
  service.header = {dapple::soft::kCmResolveIbService, sizeof service.body, 0};
  state->fail = EOPNOTSUPP;
  assert_int_equal(write(fd, &service, sizeof service), -1);
  assert_int_equal(errno, EOPNOTSUPP);
  assert_int_equal(state->length, sizeof service);
  close(fd);
}

void set_option__carries_the_value(void**) {
  const int fd = open_channel();
  const int value = 0x11223344;
  Command<rdma_ucm_set_option> command = {{RDMA_USER_CM_CMD_SET_OPTION, sizeof command.body, 0}, {}};
  command.body.optval = reinterpret_cast<uintptr_t>(&value);
  command.body.optlen = sizeof value;
  assert_int_equal(write(fd, &command, sizeof command), sizeof command);
  assert_int_equal(state->length, sizeof command + sizeof value);
  assert_memory_equal(state->command + sizeof command, &value, sizeof value);
  command.body.optval = 8;
  assert_int_equal(write(fd, &command, sizeof command), -1);
  assert_int_equal(errno, EFAULT);
  command.body.optlen = 100000;
  assert_int_equal(write(fd, &command, sizeof command), -1);
  assert_int_equal(errno, EINVAL);
  close(fd);
}

void migrate_id__names_the_source(void**) {
  const int from = open_channel();
  const int from_number = last_channel();
  const int to = open_channel();
  rdma_ucm_migrate_resp response;
  rdma_ucm_migrate_id body = {};
  body.fd = static_cast<uint32_t>(from);
  // Its events move with it.
  post(from_number);
  assert_true(soon([from] { return readable(from); }));
  state->removed = 1;
  assert_true(ask(to, RDMA_USER_CM_CMD_MIGRATE_ID, body, response) > 0);
  assert_int_equal(state->source.number, from_number);
  assert_int_equal(state->channel.number, last_channel());
  assert_int_equal(response.events_reported, 3);
  assert_false(readable(from));
  body.fd = 0;
  assert_int_equal(ask(to, RDMA_USER_CM_CMD_MIGRATE_ID, body, response), -1);
  assert_int_equal(errno, EINVAL);
  body.fd = 12345;
  assert_int_equal(ask(to, RDMA_USER_CM_CMD_MIGRATE_ID, body, response), -1);
  assert_int_equal(errno, EBADF);
  close(from);
  close(to);
}

void threads__each_gets_its_own_answers(void**) {
  static int fds[4];
  pthread_t threads[4];
  for (int& fd : fds) fd = open_channel();
  for (int i = 0; i < 4; i++) {
    pthread_create(
        &threads[i], nullptr,
        [](void* fd) -> void* {
          uint32_t last = 0;
          for (int k = 0; k < 500; k++) {
            uint32_t id = 0;
            if (create(*static_cast<int*>(fd), id) < 0 || id <= last) return fd;
            last = id;
          }
          return nullptr;
        },
        &fds[i]);
  }
  for (pthread_t thread : threads) {
    void* failed = nullptr;
    pthread_join(thread, &failed);
    assert_null(failed);
  }
  for (const int fd : fds) close(fd);
}

}  // namespace

int main() {
  if (!prepare_fake_dappled()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(open__is_a_character_device),
      cmocka_unit_test(open__without_descriptors_is_emfile),
      cmocka_unit_test(write__malformed_is_refused_as_by_the_kernel),
      cmocka_unit_test(write__stores_the_response_and_nothing_behind_it),
      cmocka_unit_test(write__pads_an_older_struct),
      cmocka_unit_test(write__carries_a_programs_event),
      cmocka_unit_test(set_option__carries_the_value),
      cmocka_unit_test(migrate_id__names_the_source),
      cmocka_unit_test(threads__each_gets_its_own_answers),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
