// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Both ends of placement in one process: what a peer may copy, and when a call that takes memory back returns.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "tests/unit/provider-soft/placement_rig.hpp"

using namespace dapple::soft;
using namespace dapple::tests;

namespace {

constexpr uint32_t kMessages = 5000;
constexpr double kMaxSeconds = 5;

double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Rig* rig = nullptr;

int make_rig(void**) {
  rig = new Rig;
  return 0;
}

int drop_rig(void**) {
  delete rig;
  rig = nullptr;
  return 0;
}

// A signal would end the program that opens a device.
void open__files_are_limited__is_closed(void**) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 64 * 1024;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    Publication publication;
    _exit(publication.open() ? 1 : 0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

// The memory of this process' table; -1 without one.
off_t memory_of_the_table() {
  off_t bytes = -1;
  DIR* folder = opendir("/proc/self/fd");
  for (const dirent* entry; folder != nullptr && (entry = readdir(folder)) != nullptr;) {
    char name[64] = "";
    struct stat status;
    if (readlinkat(dirfd(folder), entry->d_name, name, sizeof name - 1) < 0) continue;
    if (strstr(name, "dapple-placement") == nullptr || fstatat(dirfd(folder), entry->d_name, &status, 0) != 0) continue;
    bytes = status.st_blocks * 512;
  }
  closedir(folder);
  return bytes;
}

void publish__first_entry__takes_the_tables_memory(void**) {
  constexpr off_t kLargestPage = 64 * 1024;
  Publication publication;
  assert_true(publication.open());
  assert_in_range(memory_of_the_table(), 1, kLargestPage);
  assert_false(publication.shows(0x100, 1, 0, 8));
  assert_in_range(memory_of_the_table(), 1, kLargestPage);
  assert_true(publication.publish({.key = 0x100, .domain = 1, .access = 0, .address = 0, .length = 8}) != 0);
  assert_true(memory_of_the_table() >= static_cast<off_t>(sizeof(PublishedTable)));
  assert_true(publication.shows(0x100, 1, 0, 8));
}

template <typename Condition>
bool is_soon(Condition condition) {
  for (const double end = seconds() + kMaxSeconds; !condition(); usleep(1000)) {
    if (seconds() > end) return false;
  }
  return true;
}

bool write(uint64_t offset, const std::byte* from, size_t size) {
  PeerMemory::Grant grant(*rig->peer, queue_pair(kWrite), rig->range(offset, size));
  return grant && grant.write(rig->address() + offset, from, size);
}

void write_and_read__within_the_region__copy(void**) {
  assert_true(rig->peer->usable());
  std::byte from[1000], to[1000] = {};
  for (size_t i = 0; i < sizeof from; i++) from[i] = static_cast<std::byte>(i * 7);
  for (const size_t size : {1, 3, 4, 7, 8, 9, 64, 1000}) {
    memset(rig->memory, 0, sizeof from + 16);
    assert_true(write(8, from, size));
    assert_memory_equal(rig->memory + 8, from, size);
    assert_true(rig->memory[7] == std::byte{0} && rig->memory[8 + size] == std::byte{0});
  }
  PeerMemory::Grant grant(*rig->peer, queue_pair(kRead), rig->range(8, sizeof to));
  assert_true(static_cast<bool>(grant));
  assert_true(grant.read(rig->address() + 8, to, sizeof to));
  assert_memory_equal(to, from, sizeof to);
}

// By the process' number, and by the descriptor alone.
void write_and_read__many_bytes__copy(void**) {
  static std::byte from[kSize], to[kSize];
  for (size_t i = 0; i < kSize; i++) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const pid_t process : {getpid(), 0}) {
    rig->reopen(process);
    if (process == 0) assert_false(rig->peer->copies_once(kSize));
    assert_false(rig->peer->copies_once(GuardedProcess::kMin - 1));
    for (const size_t size : {GuardedProcess::kMin, kSize - 13, kSize - 9}) {
      memset(rig->memory, 0, kSize);
      assert_true(write(8, from, size));
      assert_memory_equal(rig->memory + 8, from, size);
      assert_true(rig->memory[7] == std::byte{0} && rig->memory[8 + size] == std::byte{0});
      PeerMemory::Grant grant(*rig->peer, queue_pair(kRead), rig->range(8, size));
      assert_true(grant && grant.read(rig->address() + 8, to, size));
      assert_memory_equal(to, from, size);
    }
  }
}

// The descriptor writes them, as before.
void write__pages_are_read_only__copies(void**) {
  static std::byte from[kSize / 2];
  memset(from, 3, sizeof from);
  assert_int_equal(mprotect(rig->memory, kSize, PROT_READ), 0);
  const bool written = write(0, from, sizeof from);
  assert_int_equal(mprotect(rig->memory, kSize, PROT_READ | PROT_WRITE), 0);
  assert_true(written && rig->memory[sizeof from - 1] == std::byte{3});
}

void grant__bounds__as_the_engine_has_them(void**) {
  assert_true(rig->grants(rig->range(0, kSize)));
  assert_true(rig->grants(rig->range(kSize - 1, 1)));
  assert_false(rig->grants(rig->range(0, kSize + 1)));
  assert_false(rig->grants(rig->range(kSize, 1)));
  assert_false(rig->grants({kKey, rig->address() - 1, 2}));
  assert_false(rig->grants({kKey, UINT64_MAX, 2}));
  assert_false(rig->grants(rig->range(1, UINT64_MAX)));
}

void grant__key_or_right_or_domain_is_wrong__refused(void**) {
  assert_false(rig->grants(rig->range(0, 8, kKey + 1)));
  assert_false(rig->grants(rig->range(0, 8, 0)));
  assert_true(rig->publish(kKey + 0x100, kRead) != 0 && rig->publish(kKey + 0x200, kWrite, kDomain + 1) != 0);
  assert_false(rig->grants(rig->range(0, 8, kKey + 0x100), kWrite));
  assert_true(rig->grants(rig->range(0, 8, kKey + 0x100), kRead));
  assert_false(rig->grants(rig->range(0, 8, kKey + 0x200), kWrite));
}

void grant__queue_pair_is_another_one__refused(void**) {
  for (int i = 0; i < 5; i++) {
    QpDescription wanted = queue_pair(kWrite);
    if (i == 0) wanted.qpn++;
    if (i == 1) wanted.qpn = 0;
    if (i == 2) wanted.peer_qpn++;
    if (i == 3) wanted.own_address[0]++;
    if (i == 4) wanted.peer_address[15]++;
    const PeerMemory::Grant grant(*rig->peer, wanted, rig->range(0, 8));
    assert_false(static_cast<bool>(grant));
  }
  rig->publication.revoke_qp(rig->qp);
  assert_false(rig->grants(rig->range(0, 8)));
  assert_true(rig->publication.publish(queue_pair(kRead)) != 0);
  assert_false(rig->grants(rig->range(0, 8), kWrite));
  assert_true(rig->grants(rig->range(0, 8), kRead));
}

void grant__withdrawn_or_revoked__refused_until_it_is_published_again(void**) {
  rig->publication.withdraw_qp(rig->qp);
  assert_false(rig->grants(rig->range(0, 8)));
  rig->publication.revoke_qp(rig->qp);
  assert_int_equal(rig->publication.publish(queue_pair()), rig->qp);
  assert_true(rig->grants(rig->range(0, 8)));
  rig->publication.revoke_key(rig->key);
  assert_false(rig->grants(rig->range(0, 8)));
  assert_int_equal(rig->publish(kKey), rig->key);
  assert_true(rig->grants(rig->range(0, 8)));
}

// The peer may be stopped; a program must go on then.
void stop_qp__a_grant_does_not_end__gives_up(void**) {
  auto grant = std::make_unique<PeerMemory::Grant>(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
  assert_true(static_cast<bool>(*grant));
  assert_false(rig->publication.stop_qp(rig->qp));
  assert_false(grant->queue_pair_lives());
  grant.reset();
  assert_true(rig->publication.stop_qp(rig->qp));
  assert_false(rig->grants(rig->range(0, 8)));
  assert_true(rig->publication.stop_qp(0));
}

void grant__more_threads_than_announcements__the_rest_is_refused(void**) {
  std::unique_ptr<PeerMemory::Grant> grants[kAnnouncements];
  for (auto& grant : grants) {
    grant = std::make_unique<PeerMemory::Grant>(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
    assert_true(static_cast<bool>(*grant));
  }
  assert_false(rig->grants(rig->range(0, 8)));
  grants[3].reset();
  assert_true(rig->grants(rig->range(0, 8)));
}

// Four keys share a bucket.
void publish__bucket_is_full__not_published(void**) {
  uint32_t tickets[4] = {};
  for (uint32_t i = 0; i < 4; i++) tickets[i] = rig->publish(kKey + ((i + 1) << 18));
  assert_true(tickets[2] != 0);
  assert_int_equal(tickets[3], 0);
  assert_false(rig->grants(rig->range(0, 8, kKey + (4 << 18))));
  rig->publication.revoke_key(tickets[1]);
  assert_int_equal(rig->publish(kKey + (4 << 18)), tickets[1]);
  assert_true(rig->grants(rig->range(0, 8, kKey + (4 << 18))));
}

struct Revoker {
  pthread_t thread;
  std::atomic<bool> done{false};
  bool key;

  explicit Revoker(bool revokes_key) : key(revokes_key) {
    pthread_create(
        &thread, nullptr,
        [](void* self) -> void* {
          auto& revoker = *static_cast<Revoker*>(self);
          if (revoker.key) {
            rig->publication.revoke_key(rig->key);
          } else {
            rig->publication.revoke_qp(rig->qp);
          }
          revoker.done = true;
          return nullptr;
        },
        this);
  }
  void join() const { pthread_join(thread, nullptr); }
};

// On a busy machine the thread that revokes may begin late.
bool is_revoked_soon() {
  return is_soon([] { return !rig->grants(rig->range(0, 8)); });
}

void revoke__while_a_grant_exists__waits_for_its_end(void**) {
  for (const bool key : {true, false}) {
    auto grant = std::make_unique<PeerMemory::Grant>(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
    assert_true(static_cast<bool>(*grant));
    const Revoker revoker(key);
    assert_true(is_revoked_soon());
    usleep(50000);
    assert_false(revoker.done);
    grant.reset();
    revoker.join();
    rig->key = key ? rig->publish(kKey) : rig->key;
  }
}

void revoke__another_entry__does_not_wait(void**) {
  const uint32_t other = rig->publish(kKey + 0x100);
  const PeerMemory::Grant grant(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
  assert_true(static_cast<bool>(grant));
  rig->publication.revoke_key(other);
}

void revoke__the_process_with_a_grant_ends__returns(void**) {
  const PeerMemory::Grant grant(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
  assert_true(static_cast<bool>(grant));
  const Revoker revoker(true);
  assert_true(is_revoked_soon());
  usleep(50000);
  assert_false(revoker.done);
  rig->socket.reset();
  revoker.join();
}

// The line with the number of the process that does not go on.
void revoke__a_grant_does_not_end__says_so_once_a_second(void**) {
  constexpr int kLines = 2;
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  const OwnedFd reader(ends[0]), writer(ends[1]);
  const OwnedFd standard(dup(STDERR_FILENO));
  char text[1000] = {}, process[32];
  size_t size = 0;
  auto grant = std::make_unique<PeerMemory::Grant>(*rig->peer, queue_pair(kWrite), rig->range(0, 8));
  dup2(writer.get(), STDERR_FILENO);
  const double begin = seconds();
  const Revoker revoker(true);
  while (std::count(text, text + size, '\n') < kLines) {
    const ssize_t got = read(reader.get(), text + size, sizeof text - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  const double taken = seconds() - begin;
  dup2(standard.get(), STDERR_FILENO);
  grant.reset();
  revoker.join();
  assert_int_equal(std::count(text, text + size, '\n'), kLines);
  assert_true(taken >= kLines);
  snprintf(process, sizeof process, "dapple: process %d ", getpid());
  assert_memory_equal(text, process, strlen(process));
}

struct Writers {
  static constexpr int kThreads = 3;
  pthread_t threads[kThreads];
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};

  Writers() {
    for (pthread_t& thread : threads) pthread_create(&thread, nullptr, run, this);
  }
  ~Writers() {
    stop = true;
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  }
  static void* run(void* self) {
    auto& writers = *static_cast<Writers*>(self);
    const auto bytes = std::make_unique<std::byte[]>(kSize);
    for (uint8_t value = 1; !writers.stop; value++) {
      memset(bytes.get(), value, kSize);
      if (write(0, bytes.get(), kSize)) {
        writers.written++;
      } else {
        sched_yield();
      }
    }
    return nullptr;
  }
  void await_more() const {
    for (const uint64_t before = written; written < before + 2;) sched_yield();
  }
};

void revoke__while_peers_write__no_byte_changes_afterwards(void**) {
  const Writers writers;
  auto before = std::make_unique<std::byte[]>(kSize);
  for (int round = 0; round < 100; round++) {
    writers.await_more();
    const bool key = round % 2 == 0;
    if (key) {
      rig->publication.revoke_key(rig->key);
    } else {
      rig->publication.revoke_qp(rig->qp);
    }
    memcpy(before.get(), rig->memory, kSize);
    usleep(1000);
    assert_memory_equal(before.get(), rig->memory, kSize);
    if (key) {
      rig->key = rig->publish(kKey);
    } else {
      rig->qp = rig->publication.publish(queue_pair());
    }
  }
}

// Writes messages whose words all have the message's number, twice.
struct Sender {
  pthread_t thread;
  const size_t size;
  std::atomic<bool> stop{false};

  explicit Sender(size_t message_size) : size(message_size) { pthread_create(&thread, nullptr, run, this); }
  ~Sender() {
    stop = true;
    pthread_join(thread, nullptr);
  }
  static void* run(void* self) {
    const auto& sender = *static_cast<Sender*>(self);
    uint64_t words[kSize / 8];
    for (uint32_t number = 1; !sender.stop; number++) {
      std::fill(words, words + sender.size / 8, uint64_t{number} << 32 | number);
      write(0, reinterpret_cast<const std::byte*>(words), sender.size);
    }
    return nullptr;
  }
};

// If so, newer kernels copy eight bytes by a string instruction, which may store four of them first.
bool copies_short_strings() {
  std::ifstream processors("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(processors), {}};
  return text.find(" fsrm") != std::string::npos;
}

// Programs poll the last bytes of a Write. A word may be newer than the last one, and not older.
void write__last_word_is_visible_last_and_at_once(void**) {
  const auto* words = reinterpret_cast<const volatile uint64_t*>(rig->memory);
  const bool is_whole = !copies_short_strings();
  // 8200: the last word begins a page.
  for (const size_t size : {8, 64, 1000, 8192, 8200, 65536}) {
    memset(rig->memory, 0, kSize);
    const Sender sender(size);
    uint64_t seen = 0;
    uint32_t messages = 0;
    for (const double end = seconds() + kMaxSeconds; messages < kMessages && seconds() < end;) {
      const uint64_t last = words[size / 8 - 1];
      if (last == seen) continue;
      std::atomic_thread_fence(std::memory_order_acquire);
      seen = last;
      messages++;
      if (is_whole) assert_int_equal(last >> 32, last & UINT32_MAX);
      assert_true(last >> 32 <= (last & UINT32_MAX));  // the last four bytes are no newer
      for (size_t i = 0; i < size / 8; i++) assert_true(words[i] >> 32 >= last >> 32);
    }
    assert_true(messages > 1);
  }
}

// Zeros: the nonce's address is not mapped.
OwnedFd make_table(bool sealed) {
  OwnedFd table(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  assert_int_equal(fallocate(table.get(), 0, 0, sizeof(PublishedTable)), 0);
  if (sealed) assert_int_equal(fcntl(table.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  return table;
}

void open__no_table_of_ours__unusable(void**) {
  for (const bool sealed : {false, true}) {
    PeerMemory peer;
    rig->ask();
    assert_int_equal(peer.prove(rig->words(), kParties, getpid(), rig->publication.hides_secrets()), Right::kGranted);
    peer.open(make_table(sealed), rig->ring.control().announcements, kSlot, getpid());
    assert_false(peer.usable());
  }
}

void open__without_a_proof__unusable(void**) {
  PeerMemory peer;
  peer.open(make_table(true), rig->ring.control().announcements, kSlot, getpid());
  assert_false(peer.usable());
}

void judge__wrong_answer_or_strange_reason__no_table(void**) {
  constexpr Right kStrange[] = {Right::kAsked, Right::kOff, Right::kNotProved, Right::kCount,
                                static_cast<Right>(0xFFFF)};
  for (int i = 0; i < 4; i++) {
    PeerMemory peer;
    rig->ask();
    assert_int_equal(peer.prove(rig->words(), kParties, getpid(), rig->publication.hides_secrets()), Right::kGranted);
    if (i == 0) rig->words().answer[0]++;
    if (i == 1) rig->words().answer[1] ^= uint64_t{1} << 63;
    rig->words().right = Right::kGranted;
    if (i == 2) rig->words().right = Right::kRefused;
    const Right expected = i < 2 ? Right::kNotProved : i == 2 ? Right::kRefused : Right::kGranted;
    assert_int_equal(rig->publication.judge(*rig->placer), expected);
    char byte;
    assert_int_equal(recv(rig->socket.get(), &byte, 1, MSG_DONTWAIT), i == 3 ? 1 : -1);
  }
  for (const Right strange : kStrange) {
    rig->ask();
    rig->words().right = strange;
    assert_int_equal(rig->publication.judge(*rig->placer), Right::kNotProved);
  }
}

// Of another connection, with another secret.
void judge__answer_to_an_earlier_challenge__no_table(void**) {
  PeerMemory peer;
  rig->ask();
  assert_int_equal(peer.prove(rig->words(), kParties, getpid(), rig->publication.hides_secrets()), Right::kGranted);
  rig->ask();
  rig->words().right = Right::kGranted;
  assert_int_equal(rig->publication.judge(*rig->placer), Right::kNotProved);
}

void write__the_process_has_ended__refused_for_ever(void**) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const OwnedFd ours(ends[0]);
  OwnedFd theirs(ends[1]);
  RingMemory ring;
  OwnedFd file;
  assert_int_equal(ring.create(file), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto* child_rig = new Publication;
    auto* placer = new Placer;
    placer->socket = std::move(theirs);
    const bool good =
        placer->memory.map(file.get()) == 0 && child_rig->open() && child_rig->ask(*placer, kParties) &&
        is_soon([&] { return child_rig->judge(*placer) == Right::kGranted; }) &&
        child_rig->publish(queue_pair()) != 0 &&
        child_rig->publish(KeyDescription{
            .key = kKey, .domain = kDomain, .access = kWrite, .address = rig->address(), .length = kSize}) != 0;
    if (good) pause();
    _exit(1);
  }
  theirs.reset();
  std::byte bytes[8] = {};
  PeerMemory peer;
  ProofWords& words = ring.control().proof;
  assert_true(is_soon([&] { return words.asked == 1; }));
  words.right = peer.prove(words, kParties, child, rig->publication.hides_secrets());
  peer.open(Rig::receive_table(ours), ring.control().announcements, kSlot, child);
  assert_true(peer.usable());
  bool granted = false;
  for (int i = 0; i < 5000 && !granted; i++) {
    PeerMemory::Grant grant(peer, queue_pair(kWrite), rig->range(0, 8));
    granted = grant && grant.write(rig->address(), bytes, 8);
    if (!granted) usleep(1000);
  }
  assert_true(granted);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, nullptr, 0), child);
  PeerMemory::Grant grant(peer, queue_pair(kWrite), rig->range(0, 8));
  assert_true(static_cast<bool>(grant));
  assert_false(grant.write(rig->address(), bytes, 8));
  assert_false(peer.usable());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(publish__first_entry__takes_the_tables_memory),
      cmocka_unit_test(open__files_are_limited__is_closed),
      cmocka_unit_test_setup_teardown(write_and_read__within_the_region__copy, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(write_and_read__many_bytes__copy, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(write__pages_are_read_only__copies, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(grant__bounds__as_the_engine_has_them, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(grant__key_or_right_or_domain_is_wrong__refused, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(grant__queue_pair_is_another_one__refused, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(grant__withdrawn_or_revoked__refused_until_it_is_published_again, make_rig,
                                      drop_rig),
      cmocka_unit_test_setup_teardown(stop_qp__a_grant_does_not_end__gives_up, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(grant__more_threads_than_announcements__the_rest_is_refused, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(publish__bucket_is_full__not_published, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(revoke__while_a_grant_exists__waits_for_its_end, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(revoke__another_entry__does_not_wait, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(revoke__the_process_with_a_grant_ends__returns, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(revoke__a_grant_does_not_end__says_so_once_a_second, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(revoke__while_peers_write__no_byte_changes_afterwards, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(write__last_word_is_visible_last_and_at_once, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(open__no_table_of_ours__unusable, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(open__without_a_proof__unusable, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(judge__wrong_answer_or_strange_reason__no_table, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(judge__answer_to_an_earlier_challenge__no_table, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(write__the_process_has_ended__refused_for_ever, make_rig, drop_rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
