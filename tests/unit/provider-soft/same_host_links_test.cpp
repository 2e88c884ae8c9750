// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/links.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "provider/protocol/unix_message.hpp"
#include "provider/soft/links/ring_post.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

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

// dappled hands out the lowest slots first.
constexpr uint32_t kThirdSlot = 252, kOneSlot = 253, kOtherSlot = 254;
constexpr Addresses kAddresses = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1},
                                  {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 2}};

class Sink final : public ArrivalSink {
 public:
  void arrived(const Arrival& arrival) override {
    packets.emplace_back(arrival.transport.begin(), arrival.transport.end());
    acknowledgements.push_back(arrival.acknowledgement == nullptr ? 0 : arrival.acknowledgement->psn);
    good = good && memcmp(arrival.source, kAddresses.source, 16) == 0 &&
           memcmp(arrival.destination, kAddresses.destination, 16) == 0;
  }
  std::vector<std::vector<std::byte>> packets;
  std::vector<uint32_t> acknowledgements;  // PSNs; 0 for a packet without one
  bool good = true;
};

socklen_t address_of(uint32_t slot, sockaddr_un& address) {
  char name[32];
  snprintf(name, sizeof name, "%s%u", kSlotName, slot);
  return abstract_address(name, address);
}

// One process' side.
struct Process {
  OwnedFd lease{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  SameHostCounters counters;
  Sink sink;
  TransportTable transports;
  SameHostLinks links;
  Transport transport = Transport::kNone;  // by the last get()

  explicit Process(uint32_t slot, uint64_t most_bytes = UINT64_MAX) {
    sockaddr_un address;
    const socklen_t size = address_of(slot, address);
    // A process that ends, or executes another program, closes its connections a moment before its lease.
    int tries = 0;
    while (bind(lease.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 && ++tries < 5000) usleep(1000);
    assert_int_not_equal(tries, 5000);
    assert_true(links.open(slot, lease.get(), counters, transports, most_bytes) == Transport::kSharedMemory);
    assert_true(links.fd() >= 0);
  }
  RingTo* get(uint32_t slot) { return links.get(slot, transport); }
  // On a thread of its own, as the locks of the other process, which this one may hold, are not its own.
  size_t receive() {
    size_t count = 0;
    std::thread([&] {
      links.attend();
      count = links.receive(sink);
    }).join();
    return count;
  }
  bool has_event(int milliseconds = 0) const {
    pollfd waiting = {links.fd(), POLLIN, 0};
    return poll(&waiting, 1, milliseconds) == 1;
  }
};

bool write(RingTo* ring, size_t size, uint8_t value) {
  const std::lock_guard lock(ring->mutex);
  std::byte* to = ring->writer().reserve(size, kAddresses);
  if (to == nullptr) return false;
  memset(to, value, size);
  ring->writer().commit();
  ring->writer().publish();
  return true;
}

OwnedFd connect_to(uint32_t slot) {
  OwnedFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = address_of(slot, address);
  assert_int_equal(connect(made.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return made;
}

void greet(const OwnedFd& socket, const RingHello& hello, int file) {
  const int files[] = {file};
  const std::span<const int> sent(files, file >= 0 ? 1 : 0);
  assert_int_equal(send_message(socket.get(), std::as_bytes(std::span(&hello, 1)), sent), 0);
}

// Tells whether the other end has closed. `why`: the reason that it sent before.
bool closed(const OwnedFd& socket, Transport* why = nullptr) {
  uint8_t byte = 0;
  ssize_t size;
  while ((size = recv(socket.get(), &byte, 1, MSG_DONTWAIT)) == 1) {
    if (why != nullptr) *why = static_cast<Transport>(byte);
  }
  return size == 0 || errno == ECONNRESET;
}

void get__nobody_listens__null(void**) {
  Process one(kOneSlot);
  assert_null(one.get(kOtherSlot));
  assert_true(one.transport == Transport::kPeerTakesNone);
}

void get__impossible_slot__null(void**) {
  Process one(kOneSlot);
  assert_null(one.get(kOneSlot));
  assert_true(one.transport == Transport::kSameProcess);
  for (const uint32_t slot : {0U, kMaxSlots, UINT32_MAX}) {
    assert_null(one.get(slot));
    assert_true(one.transport == Transport::kPeerTakesNone);
  }
}

void get__closed__null_for_that_reason(void**) {
  SameHostLinks links;
  links.stay_closed(Transport::kFaults);
  Transport transport = Transport::kNone;
  assert_null(links.get(kOtherSlot, transport));
  assert_true(transport == Transport::kFaults);
}

void get__descriptors_run_out__null_for_that_reason(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  // The socket, and the ring's file.
  for (const int left : {0, 1}) {
    few.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get() + left);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    RingTo* ring = one.get(kOtherSlot);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_null(ring);
    assert_true(one.transport == Transport::kNoDescriptor);
  }
  RingTo* ring = one.get(kOtherSlot);
  assert_non_null(ring);
  assert_true(one.transport == Transport::kSharedMemory);
  one.links.put(ring);
}

// fallocate() would end the program by SIGXFSZ.
void get__files_may_not_be_as_large__null_for_lack_of_memory(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = kRingBytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_null(ring);
  assert_true(one.transport == Transport::kNoMemory);
}

void get__twice__one_ring(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_non_null(ring);
  assert_ptr_equal(one.get(kOtherSlot), ring);
  one.links.put(ring);
  one.links.put(ring);
}

void receive__sent_before_the_connection_is_accepted__arrives(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_true(write(ring, 20, 1));
  assert_true(write(ring, 4000, 2));
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 2);
  assert_true(other.sink.good);
  assert_int_equal(other.sink.packets[0].size(), 20);
  assert_true(other.sink.packets[1][3999] == std::byte{2});
  assert_int_equal(other.counters.received_packets.value(), 2);
  assert_int_equal(other.counters.received_bytes.value(), 4020);
  assert_int_equal(other.receive(), 0);
  one.links.put(ring);
}

void published__reader_sleeps__has_an_event(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  other.links.stay_awake();
  assert_true(write(ring, 8, 1));
  ring->published(1, one.counters.sent_packets);
  assert_false(other.has_event());
  other.links.sleep();
  assert_false(other.links.empty());
  assert_int_equal(other.receive(), 1);
  other.links.sleep();
  assert_true(other.links.empty());
  assert_true(write(ring, 8, 2));
  ring->published(1, one.counters.sent_packets);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 1);
  assert_false(other.has_event());
  assert_int_equal(one.counters.sent_packets.value(), 2);
  one.links.put(ring);
}

bool write(RingPost& post, size_t size, uint8_t value) {
  std::byte* to = post.reserve(size);
  if (to == nullptr) return false;
  memset(to, value, size);
  post.commit(nullptr);
  return true;
}

void post__one_packet__arrives_at_once(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  {
    RingPost post(kAddresses, *ring, true);
    assert_true(write(post, 20, 1));
    assert_int_equal(other.receive(), 1);
  }
  assert_int_equal(other.receive(), 0);
  one.links.put(ring);
}

void post__list__arrives_together_and_the_first_acknowledges(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  constexpr dapple::roce::Acknowledgement kAcknowledgement = {7, 0};
  {
    RingPost post(kAddresses, *ring, false);
    assert_true(post.take_along(kAcknowledgement));
    assert_true(write(post, 20, 1) && write(post, 24, 2) && write(post, 28, 3));
    assert_int_equal(other.receive(), 0);
  }
  assert_int_equal(other.receive(), 3);
  assert_true(other.sink.good);
  assert_true(other.sink.acknowledgements == std::vector<uint32_t>({7, 0, 0}));
  one.links.put(ring);
}

void post__list_that_fills_the_ring__those_that_it_took(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  size_t written = 0;
  {
    RingPost post(kAddresses, *ring, false);
    while (write(post, 1000, static_cast<uint8_t>(written))) written++;
  }
  assert_true(ring->full.load());
  assert_true(ring->mutex.try_lock());
  ring->mutex.unlock();
  while (other.receive() != 0) {
  }
  assert_int_equal(other.sink.packets.size(), written);
  for (size_t i = 0; i < written; i++) assert_true(other.sink.packets[i][999] == static_cast<std::byte>(i));
  assert_true(write(ring, 1000, 1));
  one.links.put(ring);
}

// A thread that polls may call attend() after another one has announced that it sleeps.
void attend__greeting_after_sleep__peer_wakes(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  other.links.sleep();
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  assert_false(other.has_event());
  assert_true(write(ring, 8, 1));
  ring->published(1, one.counters.sent_packets);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 1);
  one.links.put(ring);
}

// Otherwise each packet for a thread that polls would wake a sleeping thread that does not want it.
void attend__after_a_wake__peer_wakes_only_if_asked_again(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(other.receive(), 0);
  for (uint8_t i = 0; i < 6; i++) {
    const bool asked = i % 2 == 0;
    if (asked) other.links.sleep();
    assert_true(write(ring, 8, i));
    ring->published(1, one.counters.sent_packets);
    assert_int_equal(other.has_event(), asked);
    assert_int_equal(other.receive(), 1);
  }
  one.links.put(ring);
}

void get__new_owner_before_the_end_was_seen__its_ring(void**) {
  Process one(kOneSlot);
  RingTo* old = nullptr;
  {
    Process other(kOtherSlot);
    old = one.get(kOtherSlot);
    assert_int_equal(other.receive(), 0);
    other.links.close_in_child();
  }
  Process next(kOtherSlot);
  RingTo* ring = one.get(kOtherSlot);
  assert_ptr_not_equal(ring, old);
  assert_true(write(ring, 8, 1));
  assert_int_equal(next.receive(), 1);
  one.links.put(ring);
  one.links.put(old);
}

void peer_ends__its_last_packets_arrive(void**) {
  Process other(kOtherSlot);
  {
    Process one(kOneSlot);
    RingTo* ring = one.get(kOtherSlot);
    assert_true(write(ring, 8, 1));
    one.links.put(ring);
    one.links.close_in_child();
  }
  assert_int_equal(other.receive(), 1);
  assert_true(other.has_event());
  assert_int_equal(other.receive(), 0);
  assert_false(other.has_event());
}

void reader_ends__ring_is_broken_and_a_new_one_is_made(void**) {
  Process one(kOneSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_int_equal(other.receive(), 0);
    other.links.close_in_child();
  }
  assert_false(ring->broken());
  assert_true(one.has_event());
  one.links.attend();
  assert_true(ring->broken());
  assert_true(ring->end() == Transport::kPeerGone);
  assert_false(one.has_event());
  assert_null(one.get(kOtherSlot));
  Process next(kOtherSlot);
  RingTo* fresh = one.get(kOtherSlot);
  assert_non_null(fresh);
  assert_false(fresh->broken());
  assert_true(write(fresh, 8, 1));
  assert_int_equal(next.receive(), 1);
  one.links.put(ring);
  one.links.put(fresh);
}

void attend__wrong_greeting__closed(void**) {
  Process one(kOneSlot);
  const OwnedFd file(memfd_create("test", MFD_CLOEXEC));
  OwnedFd ring_file;
  RingMemory ring;
  assert_int_equal(ring.create(ring_file), 0);
  for (int i = 0; i < 6; i++) {
    const OwnedFd peer = connect_to(kOneSlot);
    RingHello hello;
    if (i == 0) hello.magic++;
    if (i == 1) hello.version++;
    if (i == 2) hello.ring_bytes *= 2;
    // i == 3: no file; i == 4: no ring
    if (i == 5) {
      assert_int_equal(send(peer.get(), "hello", 5, 0), 5);
    } else {
      greet(peer, hello, i == 3 ? -1 : i == 4 ? file.get() : ring_file.get());
    }
    one.links.attend();
    Transport why = Transport::kNone;
    assert_true(closed(peer, &why));
    assert_true(why == (i == 1 || i == 2 ? Transport::kOtherRelease : Transport::kPeerTakesNone));
  }
  const OwnedFd peer = connect_to(kOneSlot);
  greet(peer, {}, ring_file.get());
  one.links.attend();
  assert_false(closed(peer));
}

void attend__more_connections_than_slots__the_rest_is_closed(void**) {
  rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit enough = {files.rlim_max, files.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &enough), 0);
  Process one(kOneSlot);
  std::vector<OwnedFd> peers;
  for (uint32_t i = 0; i < kMaxSlots + 20; i++) {
    peers.push_back(connect_to(kOneSlot));
    one.links.attend();
  }
  for (uint32_t i = 0; i < kMaxSlots + 20; i++) assert_int_equal(closed(peers[i]), i >= kMaxSlots);
  peers.clear();
  while (one.has_event()) one.links.attend();
  Process other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

void attend__no_descriptor_left__the_connection_is_closed(void**) {
  Process one(kOneSlot);
  rlimit limit, none_left;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  {
    const OwnedFd peer = connect_to(kOneSlot);
    none_left = limit;
    none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    one.links.attend();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    Transport why = Transport::kNone;
    assert_true(closed(peer, &why));
    assert_true(why == Transport::kPeerNoDescriptor);
    assert_false(one.has_event());
  }
  Process other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
}

// Another thread may take the descriptor that was kept to refuse connections.
void attend__reserve_is_lost_too__sleeps_and_accepts_later(void**) {
  constexpr int kPatience = 5000;
  Process one(kOneSlot), other(kOtherSlot);
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none_left = limit;
  none_left.rlim_cur = 3;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  one.links.attend();
  const bool spins = one.has_event();
  const bool looks_again = one.has_event(kPatience);
  one.links.attend();
  one.links.attend();
  const bool spins_again = one.has_event();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_false(spins);
  assert_true(looks_again);
  assert_false(spins_again);
  assert_false(other.has_event());
  assert_true(one.has_event(kPatience));
  one.links.attend();
  assert_int_equal(one.receive(), 1);
  // The reserve is there again.
  const OwnedFd late = connect_to(kOneSlot);
  none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  one.links.attend();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_true(closed(late));
  other.links.put(ring);
}

// Packets for a process never reach the next owner of its slot by the old ring.
void reader_ends_with_packets_unread__next_owner_gets_none(void**) {
  Process one(kOneSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_true(write(ring, 8, 1));
    other.links.attend();
    other.links.close_in_child();
  }
  Process next(kOtherSlot);
  // The writer has not seen the end yet.
  assert_false(ring->broken());
  assert_true(write(ring, 8, 2));
  ring->published(1, one.counters.sent_packets);
  assert_int_equal(next.receive(), 0);
  assert_false(next.has_event());
  while (one.has_event()) one.links.attend();
  assert_true(ring->broken());
  assert_int_equal(next.receive(), 0);
  assert_int_equal(next.counters.received_packets.value(), 0);
  one.links.put(ring);
}

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

// The name of a slot, at which a peer listens.
OwnedFd listen_at(uint32_t slot) {
  OwnedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = address_of(slot, address);
  assert_int_equal(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  assert_int_equal(listen(listener.get(), 1), 0);
  return listener;
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

void get__cap_is_reached__null_until_a_ring_is_given_back(void**) {
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot, 2 * RingMemory::kFileBytes - 1);
  one.transports.open(*pages);
  Process third(kThirdSlot);
  RingTo* ring = nullptr;
  {
    Process other(kOtherSlot);
    ring = one.get(kOtherSlot);
    assert_non_null(ring);
    assert_int_equal(pages->ring_bytes.value(), RingMemory::kFileBytes);
    assert_null(one.get(kThirdSlot));
    assert_true(one.transport == Transport::kCap);
    other.links.close_in_child();
  }
  while (one.has_event()) one.links.attend();
  // A queue pair still has it.
  assert_null(one.get(kThirdSlot));
  assert_true(one.transport == Transport::kCap);
  one.links.put(ring);
  assert_int_equal(pages->ring_bytes.value(), 0);
  ring = one.get(kThirdSlot);
  assert_non_null(ring);
  one.links.put(ring);
}

// The reason reaches the writer, and its table.
void ring_is_refused__writer_knows_why(void**) {
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot), other(kOtherSlot);
  one.transports.open(*pages);
  RingTo* ring = one.get(kOtherSlot);
  TransportRow row;
  row.slot = kOtherSlot;
  row.transport = Transport::kSharedMemory;
  row.ring = ring->number();
  const uint32_t place = one.transports.take(row);
  rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none_left = limit;
  none_left.rlim_cur = static_cast<rlim_t>(OwnedFd(dup(0)).get());
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  other.links.attend();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  // Before attend() has seen it.
  RingTo* next = one.get(kOtherSlot);
  assert_true(ring->broken());
  assert_true(ring->end() == Transport::kPeerNoDescriptor);
  assert_ptr_not_equal(next, ring);
  assert_true(pages->rows[0].read(row));
  assert_true(row.transport == Transport::kPeerNoDescriptor);
  one.transports.leave(place);
  one.links.put(ring);
  one.links.put(next);
}

// A peer may send any byte as the reason for its end. The writer takes only a reason that a peer of ours can have.
void peer_sends_impossible_reason__writer_takes_it_for_gone(void**) {
  Process one(kOneSlot);
  const OwnedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = address_of(kOtherSlot, address);
  assert_int_equal(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  assert_int_equal(listen(listener.get(), 8), 0);
  for (const auto reason : {Transport::kSharedMemory, Transport::kCount, static_cast<Transport>(255)}) {
    for (const bool attended : {false, true}) {
      RingTo* ring = one.get(kOtherSlot);
      assert_non_null(ring);
      OwnedFd peer(accept(listener.get(), nullptr, nullptr));
      assert_int_equal(send(peer.get(), &reason, 1, 0), 1);
      if (attended) one.links.attend();
      RingTo* next = one.get(kOtherSlot);
      assert_ptr_not_equal(next, ring);
      assert_true(ring->broken());
      assert_true(ring->end() == Transport::kPeerGone);
      one.links.put(ring);
      peer = OwnedFd(accept(listener.get(), nullptr, nullptr));
      peer.reset();
      one.links.attend();
      one.links.put(next);
    }
  }
}

void receive__overwritten_ring__dropped_and_others_go_on(void**) {
  Process one(kOneSlot), other(kOtherSlot);
  OwnedFd file;
  RingMemory memory;
  assert_int_equal(memory.create(file), 0);
  const OwnedFd hostile = connect_to(kOneSlot);
  greet(hostile, {}, file.get());
  RingTo* ring = other.get(kOneSlot);
  assert_true(write(ring, 8, 1));
  memset(memory.data(), 0xFF, kRingBytes);
  assert_int_equal(one.receive(), 1);
  Transport why = Transport::kNone;
  assert_true(closed(hostile, &why));
  assert_true(why == Transport::kOverwritten);
  assert_int_equal(one.counters.broken.value(), 1);
  assert_true(write(ring, 8, 1));
  assert_int_equal(one.receive(), 1);
  other.links.put(ring);
}

// The steps of a writer that wants to copy in the memory of the reader, which is this process.
void prove(PeerMemory& memory, ProofWords& words, const OwnedFd& socket, const Publication& publication) {
  assert_int_equal(words.asked.load(), 1);
  words.right = memory.prove(words, {kOneSlot, kOtherSlot}, getpid(), publication.hides_secrets());
  const char byte = 0;
  assert_int_equal(send(socket.get(), &byte, 1, 0), 1);
}

// The number of descriptors that have come.
size_t table_of(const OwnedFd& socket) {
  std::byte bytes[16];
  Descriptors files;
  receive_message(socket.get(), bytes, files, MSG_DONTWAIT);
  return files.count;
}

// The reader asks, the writer answers, the reader sends its table, and the writer takes it.
void shake_hands(Process& writer, Process& reader) {
  for (int i = 0; i < 2; i++) {
    assert_int_equal(reader.receive(), 0);
    assert_int_equal(writer.receive(), 0);
  }
}

Right right_in(const SlotTransports& pages) {
  TransportRow row;
  return pages.rows[0].read(row) ? row.right : Right::kNone;
}

// The right of the peer, step by step.
void attend__writer_proves_its_right__gets_the_table(void**) {
  Publication of_one, of_other;
  assert_true(of_one.open() && of_other.open());
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot), other(kOtherSlot);
  one.links.place_by(of_one);
  other.links.place_by(of_other);
  other.transports.open(*pages);
  TransportRow row;
  row.slot = kOneSlot;
  row.transport = Transport::kSharedMemory;
  other.transports.take(row);
  RingTo* ring = one.get(kOtherSlot);
  assert_int_equal(right_in(*pages), Right::kNone);
  assert_int_equal(other.receive(), 0);
  assert_int_equal(right_in(*pages), Right::kAsked);
  assert_int_equal(one.receive(), 0);
  assert_false(ring->peer_memory().usable());
  assert_int_equal(other.receive(), 0);
  assert_int_equal(right_in(*pages), Right::kGranted);
  assert_int_equal(one.receive(), 0);
  assert_true(ring->peer_memory().usable());
  one.links.put(ring);
}

void attend__one_end_places_nothing__right_has_the_reason(void**) {
  for (const bool reader_is_off : {true, false}) {
    Publication publication;
    assert_true(publication.open());
    const auto pages = std::make_unique<SlotTransports>();
    Process one(kOneSlot), other(kOtherSlot);
    (reader_is_off ? one : other).links.place_by(publication);
    other.transports.open(*pages);
    TransportRow row;
    row.slot = kOneSlot;
    row.transport = Transport::kSharedMemory;
    RingTo* ring = one.get(kOtherSlot);
    shake_hands(one, other);
    assert_int_equal(other.receive(), 0);
    // A row that comes later has the right, too.
    other.transports.take(row);
    assert_int_equal(right_in(*pages), reader_is_off ? Right::kOff : Right::kPeerOff);
    assert_false(ring->peer_memory().usable());
    one.links.put(ring);
  }
}

// A writer that cannot read the secret, or says so, or never answers.
void attend__writer_proves_nothing__no_descriptor(void**) {
  Publication publication;
  assert_true(publication.open());
  const auto pages = std::make_unique<SlotTransports>();
  Process one(kOneSlot);
  one.links.place_by(publication);
  one.transports.open(*pages);
  TransportRow row;
  row.slot = kOtherSlot;
  row.transport = Transport::kSharedMemory;
  one.transports.take(row);
  for (const Right claim : {Right::kNone, Right::kGranted, Right::kRefused, static_cast<Right>(4711)}) {
    OwnedFd file;
    RingMemory memory;
    assert_int_equal(memory.create(file), 0);
    OwnedFd peer = connect_to(kOneSlot);
    RingHello hello;
    hello.slot = kOtherSlot;
    greet(peer, hello, file.get());
    assert_int_equal(one.receive(), 0);
    assert_int_equal(memory.control().proof.asked.load(), 1);
    memory.control().proof.right = claim;
    for (int i = 0; i < 3; i++) {
      const char byte = 0;
      assert_int_equal(send(peer.get(), &byte, 1, 0), 1);
      assert_int_equal(one.receive(), 0);
      assert_int_equal(table_of(peer), 0);
    }
    const Right expected = claim == Right::kNone      ? Right::kAsked
                           : claim == Right::kRefused ? Right::kRefused
                                                      : Right::kNotProved;
    assert_int_equal(right_in(*pages), expected);
    // A proof comes too late after a wrong one.
    if (expected == Right::kNotProved) {
      PeerMemory copying;
      copying.prove(memory.control().proof, {kOneSlot, kOtherSlot}, getpid(), publication.hides_secrets());
      memory.control().proof.right = Right::kGranted;
      const char byte = 0;
      assert_int_equal(send(peer.get(), &byte, 1, 0), 1);
      assert_int_equal(one.receive(), 0);
      assert_int_equal(table_of(peer), 0);
    }
    peer.reset();
    one.links.attend();
    assert_int_equal(right_in(*pages), Right::kNone);
  }
}

// More connections than there are secrets, each of which ends.
void attend__many_writers_never_answer__the_next_one_is_asked(void**) {
  Publication publication;
  assert_true(publication.open());
  Process one(kOneSlot);
  one.links.place_by(publication);
  for (int i = 0; i < 600; i++) {
    OwnedFd file;
    RingMemory memory;
    assert_int_equal(memory.create(file), 0);
    OwnedFd peer = connect_to(kOneSlot);
    greet(peer, {}, file.get());
    assert_int_equal(one.receive(), 0);
    assert_int_equal(memory.control().proof.asked.load(), 1);
    peer.reset();
    one.links.attend();
  }
}

// The peer of such a ring lives, and may be copying.
void receive__overwritten_ring_of_a_peer_that_copies__revoke_waits_for_the_copy(void**) {
  Publication publication;
  assert_true(publication.open());
  Process one(kOneSlot);
  one.links.place_by(publication);
  OwnedFd file;
  RingMemory memory;
  assert_int_equal(memory.create(file), 0);
  OwnedFd peer = connect_to(kOneSlot);
  RingHello hello;
  hello.slot = kOtherSlot;
  greet(peer, hello, file.get());
  assert_int_equal(one.receive(), 0);
  PeerMemory copying;
  prove(copying, memory.control().proof, peer, publication);
  assert_int_equal(one.receive(), 0);
  assert_int_equal(table_of(peer), 1);
  const uint32_t ticket = publication.publish(KeyDescription{.key = 256});
  std::atomic<uint64_t>& word = memory.control().announcements[0].tickets;
  word.store(announced(ticket, 0));
  memset(memory.data(), 0xFF, kRingBytes);
  assert_int_equal(one.receive(), 0);
  Transport why = Transport::kNone;
  assert_true(closed(peer, &why));
  assert_true(why == Transport::kOverwritten);
  std::atomic<bool> revoked{false};
  std::thread revoking([&] {
    publication.revoke_key(ticket);
    revoked = true;
  });
  usleep(100'000);
  const bool too_early = revoked;
  word.store(0);
  revoking.join();
  assert_false(too_early);
  assert_true(one.links.empty());
  peer.reset();
  one.links.attend();
  assert_false(one.has_event());
  assert_false(one.links.any());
}

void reader_refuses_an_overwritten_ring__writer_copies_no_more(void**) {
  Publication of_one, of_other;
  assert_true(of_one.open() && of_other.open());
  Process one(kOneSlot), other(kOtherSlot);
  one.links.place_by(of_one);
  other.links.place_by(of_other);
  RingTo* ring = one.get(kOtherSlot);
  shake_hands(one, other);
  assert_true(ring->peer_memory().usable());
  std::byte* packet = ring->writer().reserve(8, kAddresses);
  ring->writer().commit();
  ring->writer().publish();
  reinterpret_cast<RingEntry*>(packet - sizeof(Addresses) - sizeof(RingEntry))->size = 0xFFFF;
  assert_int_equal(other.receive(), 0);
  one.links.attend();
  assert_true(ring->broken());
  assert_false(ring->peer_memory().usable());
  // The connection ends with the ring's last user.
  assert_true(other.links.any());
  one.links.put(ring);
  other.links.attend();
  assert_false(other.links.any());
}

}  // namespace

int main() {
  // The names of slots are those of a network, in which dappled or another run of this test may have them. A system
  // without such namespaces has to do with its own network.
  (void)dapple::tests::enter_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test(get__nobody_listens__null),
      cmocka_unit_test(get__impossible_slot__null),
      cmocka_unit_test(get__closed__null_for_that_reason),
      cmocka_unit_test(get__descriptors_run_out__null_for_that_reason),
      cmocka_unit_test(get__files_may_not_be_as_large__null_for_lack_of_memory),
      cmocka_unit_test(fork__during_accept__child_has_no_copy),
      cmocka_unit_test(fork__during_connect__child_has_no_copy),
      cmocka_unit_test(fork__a_ring_is_forgotten__child_has_no_copy),
      cmocka_unit_test(get__cap_is_reached__null_until_a_ring_is_given_back),
      cmocka_unit_test(ring_is_refused__writer_knows_why),
      cmocka_unit_test(get__twice__one_ring),
      cmocka_unit_test(receive__sent_before_the_connection_is_accepted__arrives),
      cmocka_unit_test(published__reader_sleeps__has_an_event),
      cmocka_unit_test(post__one_packet__arrives_at_once),
      cmocka_unit_test(post__list__arrives_together_and_the_first_acknowledges),
      cmocka_unit_test(post__list_that_fills_the_ring__those_that_it_took),
      cmocka_unit_test(attend__greeting_after_sleep__peer_wakes),
      cmocka_unit_test(attend__after_a_wake__peer_wakes_only_if_asked_again),
      cmocka_unit_test(get__new_owner_before_the_end_was_seen__its_ring),
      cmocka_unit_test(peer_ends__its_last_packets_arrive),
      cmocka_unit_test(reader_ends__ring_is_broken_and_a_new_one_is_made),
      cmocka_unit_test(attend__writer_proves_its_right__gets_the_table),
      cmocka_unit_test(attend__one_end_places_nothing__right_has_the_reason),
      cmocka_unit_test(attend__writer_proves_nothing__no_descriptor),
      cmocka_unit_test(attend__many_writers_never_answer__the_next_one_is_asked),
      cmocka_unit_test(attend__wrong_greeting__closed),
      cmocka_unit_test(attend__more_connections_than_slots__the_rest_is_closed),
      cmocka_unit_test(attend__no_descriptor_left__the_connection_is_closed),
      cmocka_unit_test(attend__reserve_is_lost_too__sleeps_and_accepts_later),
      cmocka_unit_test(reader_ends_with_packets_unread__next_owner_gets_none),
      cmocka_unit_test(reader_executes_another_program__ring_ends),
      cmocka_unit_test(peer_sends_impossible_reason__writer_takes_it_for_gone),
      cmocka_unit_test(receive__overwritten_ring__dropped_and_others_go_on),
      cmocka_unit_test(receive__overwritten_ring_of_a_peer_that_copies__revoke_waits_for_the_copy),
      cmocka_unit_test(reader_refuses_an_overwritten_ring__writer_copies_no_more),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
