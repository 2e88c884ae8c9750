// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes of one user, of which the kernel does not let one trace the other: by its user namespace, its
// capabilities, its PID namespace, or because the other one is not dumpable. It gets nothing by which it could reach
// the other one's memory, and transfers work. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "provider/member/daemon_link.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/protocol/transport_messages.hpp"
#include "provider/soft/links/links.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/placement_rig.hpp"

using namespace dapple;
using namespace dapple::tests;
using soft::Right;

namespace {

constexpr size_t kSizes[] = {1, 8, 4096, 65541, 3 * 1024 * 1024};
constexpr uint32_t kUnusedSlot = 200;

// Memory that is not registered, and not writable.
const char never_registered[] = "never registered";

bool write_file(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool good = write(file, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  close(file);
  return good;
}

bool enter_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  char line[64];
  if (unshare(CLONE_NEWUSER) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "%u %u 1", uid, uid);
  if (!write_file("/proc/self/uid_map", line)) return false;
  snprintf(line, sizeof line, "%u %u 1", gid, gid);
  return write_file("/proc/self/gid_map", line);
}

bool drop_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return false;
  // The kernel has made the process not dumpable, which is another case.
  return prctl(PR_SET_DUMPABLE, 1) == 0;
}

// Goes on as the first process of a new PID namespace. It still has the old /proc, so its capabilities would let it
// open the memory of processes whose numbers there it has learnt.
bool enter_pid_namespace() {
  if (unshare(CLONE_NEWPID) != 0) return false;
  const pid_t child = fork();
  if (child == 0) return drop_capabilities() && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

bool become_undumpable() {
  return drop_capabilities() && prctl(PR_SET_DUMPABLE, 0) == 0;
}

char pattern(size_t at, size_t seed) {
  return static_cast<char>(at * 7 + seed + at / 251);
}

void fill(char* buffer, size_t size, size_t seed) {
  for (size_t i = 0; i < size; i++) buffer[i] = pattern(i, seed);
}

void expect(PlacementEnd& sender, ibv_wr_opcode opcode, size_t size, const char* what) {
  const ibv_wc_status status = sender.transfer(opcode, 0, static_cast<uint32_t>(size));
  if (status != IBV_WC_SUCCESS) failed(what, ibv_wc_status_str(status));
  if (memcmp(placement_stage->reached, sender.buffer, size) != 0) failed(what, "wrong bytes");
}

void transfer_all_sizes(PlacementEnd& sender) {
  for (const size_t size : kSizes) {
    fill(sender.buffer, size, size);
    memset(placement_stage->reached, 0, size);
    expect(sender, IBV_WR_RDMA_WRITE, size, "a Write");
    memset(sender.buffer, 0, size);
    expect(sender, IBV_WR_RDMA_READ, size, "a Read");
    fill(sender.buffer, size, size + 1);
    if (!order(Order::kReceiveAll)) return failed("no receive");
    expect(sender, IBV_WR_SEND, size, "a Send");
  }
}

bool reaches(pid_t process) {
  char name[32];
  snprintf(name, sizeof name, "/proc/%d/mem", process);
  const int file = open(name, O_RDWR | O_CLOEXEC);
  if (file >= 0) close(file);
  return file >= 0;
}

// A ring as the plug-in makes it.
soft::RingMemory::Control* make_ring(soft::OwnedFd& file) {
  constexpr size_t kBytes = soft::RingMemory::kFileBytes;
  file.reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fallocate(file.get(), 0, 0, kBytes) != 0) return nullptr;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return nullptr;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<soft::RingMemory::Control*>(memory);
}

// Takes all that the target sends for some time. False if there was a descriptor among it.
bool gets_no_descriptor(const soft::OwnedFd& socket) {
  bool none = true;
  await(0.5, [&] {
    std::byte bytes[64];
    soft::Descriptors files;
    const ssize_t size = soft::receive_message(socket.get(), bytes, files, MSG_DONTWAIT);
    if (size <= 0) return false;
    const auto is_memory = [](const soft::OwnedFd& file) {
      char found[sizeof never_registered] = {};
      const auto size_of = static_cast<ssize_t>(sizeof found);
      return pread(file.get(), found, sizeof found, reinterpret_cast<off_t>(never_registered)) == size_of;
    };
    if (std::any_of(files.fds, files.fds + files.count, is_memory)) failed("a hostile peer has the target's memory");
    none = none && files.count == 0;
    return false;
  });
  return none;
}

// A program that connects to the target as a peer's ring would, and claims what it cannot prove.
void attack(PlacementEnd&) {
  char name[32];
  snprintf(name, sizeof name, "%s%u", soft::kSlotName, soft::slot_of(placement_stage->qpn[1]));
  sockaddr_un address;
  const socklen_t size = soft::abstract_address(name, address);
  for (const Right claim : {Right::kNone, Right::kGranted}) {
    const soft::OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    soft::OwnedFd ring;
    soft::RingMemory::Control* control = make_ring(ring);
    if (control == nullptr || connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
      return failed("no connection to the target");
    soft::RingHello hello;
    hello.slot = kUnusedSlot;
    const int files[] = {ring.get()};
    if (soft::send_message(socket.get(), std::as_bytes(std::span(&hello, 1)), files) != 0) return failed("no greeting");
    if (!gets_no_descriptor(socket)) failed("a hostile peer gets a descriptor");
    if (control->proof.asked != 1) return failed("no challenge");
    control->proof.answer[0] = control->proof.seal.load();
    control->proof.right = claim;
    const std::byte byte{0};
    if (soft::send_message(socket.get(), std::span(&byte, 1), {}) != 0) failed("no answer");
    if (!gets_no_descriptor(socket)) failed("a hostile peer gets a descriptor for a wrong answer");
  }
}

// The right of the sender, as dapple-info shows it in the target's rows.
Right right_of_sender() {
  soft::Problem problem;
  static const auto link = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  const uint32_t slot = soft::slot_of(placement_stage->qpn[1]), senders = soft::slot_of(placement_stage->qpn[0]);
  soft::TransportsReply reply;
  if (link == nullptr || !link->transports(slot, 0, reply, problem) || reply.slot != slot) return Right::kNone;
  const soft::TransportRow* begin = reply.rows;
  const soft::TransportRow* end = begin + std::min(reply.count, soft::TransportsReply::kRows);
  const auto* row = std::find_if(begin, end, [&](const soft::TransportRow& each) { return each.slot == senders; });
  return row == end ? Right::kNone : row->right;
}

void expect_right(Right right) {
  Right seen = Right::kNone;
  await(kMomentOfPatience, [&] { return (seen = right_of_sender()) == right; });
  if (seen != right) failed("the sender's right", soft::name_of(seen).key);
}

// Nothing is placed: the sender may not reach the target. The target may reach the sender.
void is_confined(PlacementEnd& sender, Right right) {
  if (reaches(placement_stage->target)) return failed("the kernel lets the sender reach the target");
  const uint64_t before = placed();
  transfer_all_sizes(sender);
  if (placed() != before) failed("a transfer was placed");
  expect_right(right);
  attack(sender);
  transfer_all_sizes(sender);
}

void is_refused(PlacementEnd& sender) {
  is_confined(sender, Right::kRefused);
}

void is_not_visible(PlacementEnd& sender) {
  is_confined(sender, Right::kNotVisible);
}

// The other way round: the target may not fetch the bytes of Sends, and the sender may place.
void target_is_confined(PlacementEnd& sender) {
  const uint64_t before = fetched();
  if (!await_placement(sender)) return failed("nothing is placed");
  transfer_all_sizes(sender);
  if (fetched() != before) failed("a Send was fetched");
}

void nobody_is_confined(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  expect_right(Right::kGranted);
  transfer_all_sizes(sender);
}

}  // namespace

int main() {
  placement_stage = prepare_stage<PlacementStage>();
  run_placement("nobody is confined", nobody_is_confined);
  run_placement("the sender has a user namespace", is_refused, {.confine_sender = enter_user_namespace});
  run_placement("the sender has no capabilities", is_refused, {.confine_sender = drop_capabilities});
  run_placement("the sender has a PID namespace", is_not_visible, {.confine_sender = enter_pid_namespace});
  run_placement("the target is not dumpable", is_refused,
                {.confine_sender = drop_capabilities, .confine_target = become_undumpable});
  run_placement("the target has a user namespace", target_is_confined, {.confine_target = enter_user_namespace});
  run_placement("the target has no capabilities", target_is_confined, {.confine_target = drop_capabilities});
  run_placement("the target has a PID namespace", target_is_confined, {.confine_target = enter_pid_namespace});
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
