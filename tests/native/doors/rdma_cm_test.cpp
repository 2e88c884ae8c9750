// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The door of rdma_cm beside a fake dappled. Runs under dapple-run, with DAPPLE_DAPPLED=fake-dappled.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/native/doors/fake_dappled.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::tests;
namespace soft = dapple::soft;

namespace {

constexpr char kPath[] = "/dev/infiniband/rdma_cm";
FakeState* state;

void nap(long milliseconds) {
  const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

// Waits up to five seconds.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 2500; i++) {
    if (condition()) return true;
    nap(2);
  }
  return false;
}

template <class Struct>
struct Command {
  rdma_ucm_cmd_hdr header;
  Struct body;
};

// A command whose response goes to `response`.
template <class Struct, class Response>
ssize_t ask(int fd, uint32_t number, Struct body, Response& response) {
  body.response = reinterpret_cast<uintptr_t>(&response);
  Command<Struct> command = {{number, sizeof body, sizeof response}, body};
  return write(fd, &command, sizeof command);
}

ssize_t create(int fd, uint32_t& id) {
  rdma_ucm_create_id_resp response = {};
  const ssize_t size = ask(fd, RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{}, response);
  id = response.id;
  return size;
}

bool works(int fd) {
  uint32_t id = 0;
  return create(fd, id) == sizeof(Command<rdma_ucm_create_id>) && id != 0;
}

ssize_t get_event(int fd, rdma_ucm_event_resp& event) {
  return ask(fd, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event);
}

bool readable(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

int last_channel() {
  return state->opens - 1;
}

void post(int channel) {
  state->post_to = channel + 1;
  assert_true(soon([] { return state->post_to == 0; }));
}

int open_channel(int flags = 0) {
  const int fd = open(kPath, O_RDWR | O_CLOEXEC | flags);
  assert_true(fd >= 0);
  return fd;
}

int exit_code(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

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

  // Half of the command, and half of the response, on a page that is not there; a page that nobody may write to.
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
  // Bytes behind the command are not part of it.
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
  // Its events go along.
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

void get_event__without_waiting(void**) {
  const int fd = open_channel(O_NONBLOCK);
  rdma_ucm_event_resp event;
  assert_int_equal(get_event(fd, event), -1);
  assert_int_equal(errno, EAGAIN);
  assert_false(readable(fd));
  post(last_channel());
  assert_true(soon([fd] { return readable(fd); }));
  assert_int_equal(get_event(fd, event), sizeof(Command<rdma_ucm_get_event>));
  assert_int_equal(event.id, last_channel());
  assert_false(readable(fd));
  // One that has gone, and one behind it; then one that has gone, and none.
  for (int i = 0; i < 2; i++) post(last_channel());
  state->forget_event = 1;
  assert_true(get_event(fd, event) > 0);
  assert_int_equal(get_event(fd, event), -1);
  assert_int_equal(errno, EAGAIN);
  close(fd);
}

void get_event__a_destroyed_ids_events_do_not_poll(void**) {
  const int fd = open_channel();
  for (int i = 0; i < 3; i++) post(last_channel());
  assert_true(soon([fd] { return readable(fd); }));
  rdma_ucm_destroy_id_resp response;
  state->removed = 2;
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{}, response) > 0);
  assert_int_equal(response.events_reported, 3);
  assert_true(readable(fd));
  state->removed = 2;  // more than there are
  assert_true(ask(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{}, response) > 0);
  assert_false(readable(fd));
  close(fd);
}

// A thread in a blocking GET_EVENT.
struct Waiter {
  int fd;
  std::atomic<bool> done;
  ssize_t result;
  int error;
  rdma_ucm_event_resp event;
  pthread_t thread;

  explicit Waiter(int on) : fd(on), done(false), result(0), error(0), event{}, thread{} {
    pthread_create(
        &thread, nullptr,
        [](void* me) -> void* {
          auto* waiter = static_cast<Waiter*>(me);
          errno = 0;
          waiter->result = get_event(waiter->fd, waiter->event);
          waiter->error = errno;
          waiter->done = true;
          return nullptr;
        },
        this);
    nap(30);
  }
  bool waits() const { return !done; }
  void* join() {
    void* value = nullptr;
    pthread_join(thread, &value);
    return value;
  }
};

void get_event__waits_for_one(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  assert_true(waiter.waits());
  // Other commands go on meanwhile.
  assert_true(works(fd));
  post(last_channel());
  waiter.join();
  assert_true(waiter.result > 0);
  assert_int_equal(waiter.event.id, last_channel());
  close(fd);
}

void get_event__a_signal_ends_or_restarts_it(void**) {
  const int fd = open_channel();
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  Waiter interrupted(fd);
  pthread_kill(interrupted.thread, SIGUSR1);
  interrupted.join();
  assert_int_equal(interrupted.result, -1);
  assert_int_equal(interrupted.error, EINTR);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  Waiter restarted(fd);
  pthread_kill(restarted.thread, SIGUSR1);
  nap(30);
  assert_true(restarted.waits());
  post(last_channel());
  restarted.join();
  assert_true(restarted.result > 0);
  close(fd);
}

void get_event__is_a_cancellation_point(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  pthread_cancel(waiter.thread);
  assert_ptr_equal(waiter.join(), PTHREAD_CANCELED);
  assert_true(works(fd));
  post(last_channel());
  rdma_ucm_event_resp event;
  assert_true(get_event(fd, event) > 0);
  close(fd);
}

void get_event__many_readers_get_all_events(void**) {
  const int fd = open_channel();
  const int channel = last_channel();
  struct Shared {
    int fd;
    std::atomic<int> got;
  } shared = {fd, {0}};
  pthread_t threads[4];
  for (pthread_t& thread : threads) {
    pthread_create(
        &thread, nullptr,
        [](void* at) -> void* {
          auto* to = static_cast<Shared*>(at);
          rdma_ucm_event_resp event;
          for (int i = 0; i < 25; i++) {
            if (get_event(to->fd, event) > 0) to->got++;
          }
          return nullptr;
        },
        &shared);
  }
  for (int i = 0; i < 100; i++) post(channel);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  assert_int_equal(shared.got, 100);
  close(fd);
}

void close__of_the_last_copy_ends_the_channel(void**) {
  const int fd = open_channel();
  const int before = state->hangups;
  const int copy = dup(fd);
  close(fd);
  nap(20);
  assert_true(works(copy));
  assert_int_equal(state->hangups, before);
  close(copy);
  assert_true(soon([before] { return state->hangups == before + 1; }));
  errno = 0;
  assert_int_equal(write(copy, "", 1), -1);
  assert_int_equal(errno, EBADF);
}

// As the kernel does: rping's thread waits while its main thread closes the channel and ends the program well.
void close__by_another_thread_does_not_wake_a_wait(void**) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const int fd = open_channel();
  Waiter waiter(fd);
  close(fd);
  nap(30);
  assert_true(waiter.waits());
  // dappled hears that the channel has gone, or an event comes for nobody.
  post(last_channel());
  nap(30);
  assert_true(waiter.waits());
  pthread_kill(waiter.thread, SIGUSR1);
  waiter.join();
  assert_int_equal(waiter.result, -1);
  assert_int_equal(waiter.error, EINTR);
}

void close__behind_our_back_is_noticed(void**) {
  const int fd = open_channel();
  const int before = state->hangups;
  syscall(SYS_close, fd);
  assert_true(soon([before] { return state->hangups == before + 1; }));
  assert_int_equal(open_channel(), fd);
  assert_true(works(fd));
  close(fd);
}

void close_range__leaves_the_channel_working(void**) {
  const int fd = open_channel();
  assert_int_equal(dup2(fd, 200), 200);
  close_range(3, 199, 0);
  for (int i = 201; i < 70000; i++) close(i);
  close_range(201, UINT_MAX, 0);
  assert_true(works(200));
  const int before = state->hangups;
  closefrom(3);
  assert_true(soon([before] { return state->hangups == before + 1; }));
}

void fork__a_child_has_a_connection_of_its_own(void**) {
  const int fd = open_channel();
  assert_true(works(fd));
  const int connections = state->connections;
  const int restores = state->restores;
  const int hangups = state->hangups;
  pid_t child = fork();
  if (child == 0) _exit(works(fd) && close(fd) == 0 ? 0 : 1);
  assert_int_equal(exit_code(child), 0);
  assert_int_equal(state->connections, connections + 1);
  assert_int_equal(state->restores, restores);
  assert_int_equal(state->hangups, hangups);
  assert_true(works(fd));
  // Only the child has it.
  child = fork();
  if (child == 0) {
    rdma_ucm_event_resp event;
    _exit(get_event(fd, event) > 0 && works(fd) ? 0 : 1);
  }
  const int channel = last_channel();
  close(fd);
  nap(50);
  assert_int_equal(state->hangups, hangups);
  post(channel);
  assert_int_equal(exit_code(child), 0);
  assert_true(soon([hangups] { return state->hangups == hangups + 1; }));
}

void fork__exec_closes_the_channel(void**) {
  const int fd = open_channel();
  const int hangups = state->hangups;
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "30", nullptr);
    _exit(1);
  }
  nap(100);
  close(fd);
  assert_true(soon([hangups] { return state->hangups == hangups + 1; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

void vfork__a_child_may_close_everything(void**) {
  const int fd = open_channel();
  const pid_t child = vfork();
  if (child == 0) {
    for (int i = 3; i < 2000; i++) close(i);
    execlp("true", "true", nullptr);
    _exit(1);
  }
  assert_int_equal(exit_code(child), 0);
  assert_true(works(fd));
  close(fd);
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

void death__the_next_dappled_gets_the_channels(void**) {
  const int fd = open_channel();
  const int first = last_channel();
  const int other = open_channel(O_NONBLOCK);
  Waiter waiter(fd);
  const int starts = state->starts;
  const int restores = state->restores;
  kill(state->process, SIGKILL);
  // Nobody asks anything.
  assert_true(soon([=] { return state->starts == starts + 1 && state->restores == restores + 2; }));
  assert_true(waiter.waits());
  assert_true(works(other));
  assert_int_equal(state->channel.number, first + 1);
  post(first);
  waiter.join();
  assert_true(waiter.result > 0);
  assert_int_equal(waiter.event.id, first);
  close(fd);
  close(other);
}

void death__a_command_is_asked_again(void**) {
  const int fd = open_channel();
  const int starts = state->starts;
  const int commands = state->commands;
  state->die = 1;
  assert_true(works(fd));
  assert_int_equal(state->starts, starts + 1);
  assert_int_equal(state->commands, commands + 2);
  // The id went with the first.
  state->die = 1;
  state->fail = ENOENT;
  rdma_ucm_destroy_id_resp response = {77};
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{}, response) > 0);
  assert_int_equal(response.events_reported, 0);
  close(fd);
}

void death__in_a_child_alone_with_the_channel(void**) {
#ifdef __SANITIZE_THREAD__
  skip();  // such a child must not start a thread
#endif
  const int fd = open_channel();
  const int channel = last_channel();
  const int restores = state->restores;
  const pid_t child = fork();
  if (child == 0) {
    rdma_ucm_event_resp event;
    _exit(get_event(fd, event) > 0 ? 0 : 1);
  }
  close(fd);
  nap(50);
  kill(state->process, SIGKILL);
  assert_true(soon([=] { return state->restores == restores + 1; }));
  post(channel);
  assert_int_equal(exit_code(child), 0);
}

void death__a_channel_that_is_refused_ends(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  state->refuse_restore = 1;
  kill(state->process, SIGKILL);
  waiter.join();
  assert_int_equal(waiter.result, -1);
  assert_int_equal(waiter.error, ENODEV);
  assert_false(works(fd));
  close(fd);
  const int next = open_channel();
  assert_true(works(next));
  close(next);
}

void version__another_one_is_one_line(void**) {
  const int fd = open_channel();
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  state->other_version = 1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    const bool refused = !works(fd) && errno == EPROTO && !works(fd) && open(kPath, O_RDWR | O_CLOEXEC) < 0;
    _exit(refused ? 0 : 1);
  }
  close(ends[1]);
  assert_int_equal(exit_code(child), 0);
  char text[1000] = "";
  size_t size = 0;
  ssize_t got;
  while ((got = read(ends[0], text + size, sizeof text - 1 - size)) > 0) size += static_cast<size_t>(got);
  assert_string_equal(
      text,
      "dapple: no software device: dappled has another release; end the programs that use dappled and start again\n");
  state->other_version = 0;
  close(ends[0]);
  close(fd);
}

bool make_state() {
  char path[] = "/tmp/fake-dappled.XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, sizeof(FakeState)) != 0) return false;
  void* page = mmap(nullptr, sizeof(FakeState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  // The file's name would stay behind when a test crashes.
  unlink(path);
  static char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", getpid(), file);
  setenv("FAKE_DAPPLED_STATE", link, 1);
  state = static_cast<FakeState*>(page);
  return page != MAP_FAILED;
}

}  // namespace

int main() {
  need_new_namespace();
  if (!make_state()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(open__is_a_character_device),
      cmocka_unit_test(open__without_descriptors_is_emfile),
      cmocka_unit_test(write__malformed_is_refused_as_by_the_kernel),
      cmocka_unit_test(write__stores_the_response_and_nothing_behind_it),
      cmocka_unit_test(write__pads_an_older_struct),
      cmocka_unit_test(set_option__carries_the_value),
      cmocka_unit_test(migrate_id__names_the_source),
      cmocka_unit_test(get_event__without_waiting),
      cmocka_unit_test(get_event__a_destroyed_ids_events_do_not_poll),
      cmocka_unit_test(get_event__waits_for_one),
      cmocka_unit_test(get_event__a_signal_ends_or_restarts_it),
      cmocka_unit_test(get_event__is_a_cancellation_point),
      cmocka_unit_test(get_event__many_readers_get_all_events),
      cmocka_unit_test(close__of_the_last_copy_ends_the_channel),
      cmocka_unit_test(close__by_another_thread_does_not_wake_a_wait),
      cmocka_unit_test(close__behind_our_back_is_noticed),
      cmocka_unit_test(fork__a_child_has_a_connection_of_its_own),
      cmocka_unit_test(fork__exec_closes_the_channel),
      cmocka_unit_test(vfork__a_child_may_close_everything),
      cmocka_unit_test(threads__each_gets_its_own_answers),
      cmocka_unit_test(death__the_next_dappled_gets_the_channels),
      cmocka_unit_test(death__a_command_is_asked_again),
      cmocka_unit_test(death__in_a_child_alone_with_the_channel),
      cmocka_unit_test(death__a_channel_that_is_refused_ends),
      cmocka_unit_test(version__another_one_is_one_line),
      // Last: it closes everything.
      cmocka_unit_test(close_range__leaves_the_channel_working),
  };
  return cmocka_run_group_tests_name("rdma_cm door", tests, nullptr, nullptr);
}
