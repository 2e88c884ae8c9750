// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Links between processes of a host, of which one forks or executes another program.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "provider/protocol/unix_message.hpp"
#include "tests/unit/provider-soft/links_rig.hpp"

using namespace dapple::soft;
using namespace dapple::soft::test;

namespace {

// Another thread calls this once, when the device has just accepted or made a connection.
std::function<void()> meanwhile;

}  // namespace

// The device calls these.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  const auto accepted = static_cast<int>(syscall(SYS_accept4, fd, address, size, flags));
  if (const auto does = std::exchange(meanwhile, nullptr)) does();
  return accepted;
}

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  const auto result = static_cast<int>(syscall(SYS_connect, fd, address, size));
  if (const auto does = std::exchange(meanwhile, nullptr)) does();
  return result;
}

namespace {

// A reader that executes another program keeps its process number.
void reader_executes_another_program__ring_ends(void**) {
  constexpr int kPatience = 5000;
  Process one(kOneSlot);
  int ready[2];
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    one.links.close_in_child();
    Process other(kOtherSlot);
    if (::write(ready[1], "x", 1) != 1) _exit(1);
    // First comes the connection, then the packet.
    while (other.receive() == 0) {
      if (!other.has_event(kPatience)) _exit(1);
      other.links.sleep();
    }
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  RingTo* ring = one.get(kOtherSlot);
  assert_non_null(ring);
  assert_true(write(ring, 8, 1));
  ring->published(1, one.counters.sent_packets);
  assert_true(one.has_event(kPatience));
  one.links.attend();
  assert_true(ring->broken());
  assert_int_equal(waitpid(reader, nullptr, WNOHANG), 0);
  // The name is free for the slot's next owner.
  Process next(kOtherSlot);
  assert_int_equal(next.receive(), 0);
  one.links.put(ring);
  kill(reader, SIGKILL);
  assert_int_equal(waitpid(reader, nullptr, 0), reader);
  close(ready[0]);
  close(ready[1]);
}

// A child of fork() that lives until the test ends.
class Child {
 public:
  explicit Child(Process& process) : process_(process) {
    assert_int_equal(pipe2(ends_, O_CLOEXEC), 0);
    assert_int_equal(pipe2(life_, O_CLOEXEC), 0);
  }
  ~Child() {
    if (id_ > 0) kill(id_, SIGKILL);
    if (id_ > 0) waitpid(id_, nullptr, 0);
    for (const int end : {ends_[0], ends_[1], life_[0], life_[1]}) close(end);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void make() {
    process_.links.fork_prepare();
    id_ = fork();
    if (id_ != 0) return process_.links.fork_parent();
    process_.links.fork_child();
    close(life_[1]);
    char byte = 'x';
    // The second call returns at the end of the test, also if it fails.
    _exit(::write(ends_[1], &byte, 1) == 1 && read(life_[0], &byte, 1) == 0 ? 0 : 1);
  }
  // Forks on another thread at the device's next call of accept4() or connect(), for which it gets a little time there.
  void make_meanwhile() {
    meanwhile = [this] {
      thread_ = std::thread([this] { make(); });
      constexpr int kALittle = 200;
      pollfd told = {ends_[0], POLLIN, 0};
      poll(&told, 1, kALittle);
    };
  }
  // It has closed its copies of the descriptors.
  void await() {
    char byte;
    if (thread_.joinable()) thread_.join();
    assert_int_equal(read(ends_[0], &byte, 1), 1);
  }

 private:
  Process& process_;
  int ends_[2] = {}, life_[2] = {};
  pid_t id_ = -1;
  std::thread thread_;
};

void fork__during_accept__child_has_no_copy(void**) {
  Process one(kOneSlot);
  Child child(one);
  const OwnedFd peer = connect_to(kOneSlot);
  child.make_meanwhile();
  one.links.attend();
  child.await();
  assert_false(closed(peer));
  one.links.close_in_child();
  assert_true(closed(peer));
}

OwnedFd accept_from(const OwnedFd& listener) {
  OwnedFd made(accept(listener.get(), nullptr, nullptr));
  std::byte bytes[sizeof(RingHello)];
  Descriptors files;
  assert_int_equal(receive_message(made.get(), bytes, files), sizeof bytes);
  return made;
}

void fork__during_connect__child_has_no_copy(void**) {
  Process one(kOneSlot);
  Child child(one);
  const OwnedFd listener = listen_at(kOtherSlot);
  child.make_meanwhile();
  RingTo* ring = one.get(kOtherSlot);
  child.await();
  const OwnedFd peer = accept_from(listener);
  assert_false(closed(peer));
  one.links.close_in_child();
  assert_true(closed(peer));
  one.links.put(ring);
}

// Its queue pairs may still be copying.
void fork__a_ring_is_forgotten__child_has_no_copy(void**) {
  Process one(kOneSlot);
  Child child(one);
  const OwnedFd listener = listen_at(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  const OwnedFd peer = accept_from(listener);
  const auto reason = static_cast<uint8_t>(Transport::kOverwritten);
  assert_int_equal(send(peer.get(), &reason, 1, 0), 1);
  assert_int_equal(shutdown(peer.get(), SHUT_WR), 0);
  one.links.attend();
  assert_true(ring->broken());
  child.make();
  child.await();
  assert_false(closed(peer));
  one.links.put(ring);
  assert_true(closed(peer));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(reader_executes_another_program__ring_ends),
      cmocka_unit_test(fork__during_accept__child_has_no_copy),
      cmocka_unit_test(fork__during_connect__child_has_no_copy),
      cmocka_unit_test(fork__a_ring_is_forgotten__child_has_no_copy),
  };
  return run_in_own_network(tests);
}
