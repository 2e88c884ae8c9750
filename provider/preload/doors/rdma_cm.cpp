// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/rdma_cm.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/common/mutex.hpp"
#include "provider/preload/doors/capture.hpp"
#include "provider/preload/doors/explanations.hpp"
#include "provider/preload/doors/link.hpp"
#include "provider/preload/doors/process/program_memory.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/rdma_cm_answers.hpp"
#include "provider/preload/doors/rdma_cm_command.hpp"
#include "provider/preload/doors/trace.hpp"
#include "provider/soft/faults/fault_plan.hpp"

namespace dapple::doors {
namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

// The errno with which DAPPLE_FAULTS lets this command fail, or 0.
int planned_error(uint32_t command) {
  soft::FaultPlan* plan = soft::fault_plan();
  const char* function = function_of(command);
  return plan == nullptr || function == nullptr ? 0 : plan->next_call(function);
}

// An event's message on its way, or one byte.
struct Message {
  // Only the first `size` bytes are valid.
  soft::CmEvent event;
  ssize_t size = 0;

  // False if there is none.
  bool receive(int fd) {
    size = recv(fd, &event, sizeof event, MSG_DONTWAIT);
    return size > 0;
  }
  bool is_event() const {
    const soft::CmCommandReply& reply = event.reply;
    constexpr ssize_t kFront = offsetof(soft::CmEvent, reply);
    return size >= kFront + ssize_t{offsetof(soft::CmCommandReply, response)} &&
           static_cast<size_t>(size - kFront) == soft::cm_size(reply) && reply.length >= sizeof(rdma_ucm_event_resp);
  }
  uint32_t id() const { return response().id; }
  bool is_removal() const {
    constexpr uint32_t kDeviceRemoval = 11;  // RDMA_CM_EVENT_DEVICE_REMOVAL
    return response().event == kDeviceRemoval;
  }

 private:
  rdma_ucm_event_resp response() const {
    rdma_ucm_event_resp response;
    memcpy(&response, event.reply.response, sizeof response);
    return response;
  }
};

// One thread at a time takes an event out of its message and enters its ticket, or gives a command that removes events.
// Otherwise a thread could hand over an event of an id that another thread has destroyed.
constinit soft::Mutex taking{soft::LockRank::kTakenEvents};

// Enters the event's ticket. False if another dappled has come: that one has the event, too.
bool enter(soft::CmFront& front, const soft::CmEvent& event) {
  assert_held(taking);
  uint64_t word = front.taken.load();
  for (;;) {
    if (static_cast<uint32_t>(word >> 32) != event.epoch) return false;
    // Another process may have entered a later one.
    const bool later = static_cast<int32_t>(event.ticket - static_cast<uint32_t>(word)) > 0;
    const uint64_t next = later ? uint64_t{event.epoch} << 32 | event.ticket : word;
    if (front.taken.compare_exchange_weak(word, next)) return true;
  }
}

// Removes the messages of events that will not be read: `bytes` messages of one byte and, with `events`, the events of
// the id. dappled sends nothing meanwhile, so the others keep their order: each goes to the end of the queue, where the
// same message has just left room.
void take_off(int fd, uint32_t bytes, bool events, uint32_t id) {
  const HeldDoor door(fd);
  if (door.get() == nullptr) return;
  int left = 0;  // bytes of all messages that have not had their turn
  if (real.ioctl(fd, FIONREAD, &left) != 0) return;
  Message message;
  while (left > 0 && message.receive(fd)) {
    left -= static_cast<int>(message.size);
    if (message.is_event() ? events && message.id() == id : bytes > 0) {
      if (!message.is_event()) --bytes;
      continue;
    }
    send(door.get()->attached[0], &message.event, static_cast<size_t>(message.size), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

// 0, or the errno for the program, and `problem` has the reason. So do the functions below.
int ask(const RdmaCmCommand& command, soft::CmCommandRequest& request, soft::CmCommandReply& reply,
        soft::Problem& problem) {
  soft::DaemonLink* link = connection(problem);
  if (link == nullptr) {
    complain(problem);
    return ENODEV;
  }
  bool again = false;
  const int error = link->cm_command(request, reply, again, problem);
  // The refusal did not come from dappled.
  if (error != 0 && link->fd() < 0) complain(problem);
  const bool is_gone = command.header.cmd == RDMA_USER_CM_CMD_DESTROY_ID ||
                       (command.header.cmd == RDMA_USER_CM_CMD_LEAVE_MCAST && error == ENOENT);
  if (error != 0 && again && is_gone) {
    // The first dappled has destroyed the id, or left the group, and the events about it were lost with that dappled.
    reply = {};
    reply.length = sizeof(rdma_ucm_destroy_id_resp);
    return 0;
  }
  return error;
}

// A number that differs for each command of all processes that share a channel.
uint32_t next_token() {
  static constinit std::atomic<uint32_t> count = 0;
  uint64_t value = (static_cast<uint64_t>(table_owner()) << 32 | ++count) * 0x9E3779B97F4A7C15;
  value = (value ^ value >> 29) * 0xBF58476D1CE4E5B9;
  return static_cast<uint32_t>(value >> 32) | 1;
}

// As ask(), and keeps or drops the answers that came along with events.
int ask_and_keep(const RdmaCmCommand& command, soft::CmCommandRequest& request, soft::CmCommandReply& reply,
                 soft::Problem& problem) {
  request.token = next_token();
  switch (command.header.cmd) {
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return ask(command, request, reply, problem);
    case RDMA_USER_CM_CMD_GET_EVENT: {
      const uint32_t age = answers_age();
      const int error = ask(command, request, reply, problem);
      if (error == 0) keep_answers(request.channel, reply, age);
      return error;
    }
    default: {
      const int error = ask(command, request, reply, problem);
      // Another process may still get the old answers, as before the command.
      if (command.id != 0) drop_answers(command.id);
      return error;
    }
  }
}

int hand_over(const RdmaCmCommand& command, const soft::CmCommandReply& reply) {
  if (command.header.cmd == RDMA_USER_CM_CMD_GET_EVENT)
    trace_event({reply.response, std::min<size_t>(reply.length, sizeof reply.response)});
  if (command.response == 0) return 0;
  const size_t size = std::min<size_t>({reply.length, command.header.out, sizeof reply.response});
  return copy_to_program(command.response, reply.response, size) ? 0 : EFAULT;
}

int carry_out(int fd, const RdmaCmCommand& command, soft::CmCommandRequest& request, soft::CmCommandReply& reply,
              soft::Problem& problem) {
  if (const int error = ask_and_keep(command, request, reply, problem); error != 0) return error;
  if (reply.removed != 0 || reply.removed_events != 0) {
    const bool migrates = command.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID;
    take_off(migrates ? static_cast<int>(command.source) : fd, reply.removed, reply.removed_events != 0, command.id);
    if (soft::DaemonLink* link = connection(problem)) link->cm_resume(migrates ? request.source : request.channel);
  }
  return hand_over(command, reply);
}

// Answers a question from the answers that came with an event. False if none of them fits.
bool know(const RdmaCmCommand& command, const soft::CmChannelName& channel, int& error) {
  if (command.header.cmd != RDMA_USER_CM_CMD_QUERY_ROUTE && command.header.cmd != RDMA_USER_CM_CMD_INIT_QP_ATTR) {
    return false;
  }
  soft::CmCommandReply reply;
  if (!find_answer(command, channel, reply)) return false;
  error = hand_over(command, reply);
  return true;
}

bool is_open(int fd, const soft::CmChannelName& channel) {
  Door door;
  return find(fd, door) && door.kind == Kind::kRdmaCm && door.channel.key == channel.key;
}

// Another thread has closed the channel under a wait. The kernel's wait holds the file and goes on until the process
// ends; programs such as rping count on that when they end. Only a handler of a signal ends this: EINTR.
int wait_for_nothing() {
  const int never = eventfd(0, EFD_CLOEXEC);
  if (never < 0) return EBADF;
  uint64_t count;
  const int error = read(never, &count, sizeof count) < 0 ? errno : EBADF;
  real.close(never);
  return error;
}

// Waits for the lines of a thread that passes this process' channels to the next dappled. A program may end at such an
// event.
void await_lines() {
  soft::Problem problem;
  if (soft::DaemonLink* link = connection(problem)) link->await_reconnection();
}

// The event of a message of one byte was not handed over and still waits at dappled, so the message waits again. One
// too many does no harm: dappled answers EAGAIN.
void put_back_byte(int fd, const soft::CmChannelName& channel) {
  const std::lock_guard lock(taking);
  const HeldDoor door(fd);
  if (door.get() == nullptr || door.get()->channel.key != channel.key) return;
  const char byte = 0;
  send(door.get()->attached[0], &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Takes an event that waits. 0, or the errno for the program; EAGAIN: there is none.
int take_event(int fd, const RdmaCmCommand& command, soft::CmCommandRequest& request) {
  const CancelGuard whole;
  const SignalGuard quiet;
  Message message;
  bool is_whole = false;
  int error = 0;
  {
    const std::lock_guard lock(taking);
    const HeldDoor door(fd);
    // Another thread may have closed the channel under the wait.
    if (door.get() == nullptr || door.get()->channel.key != request.channel.key) return EBADF;
    // Another thread may have taken the message.
    if (!message.receive(fd)) return EAGAIN;
    soft::CmFront* front = door.get()->front;
    is_whole = front != nullptr && message.is_event() && enter(*front, message.event);
    if (is_whole) {
      soft::CmCommandReply& reply = message.event.reply;
      const uint32_t age = answers_age();
      if (front->commands.load() != message.event.commands) reply.ahead = 0;
      keep_answers(request.channel, reply, age);
      error = hand_over(command, reply);
    }
  }
  // EAGAIN from dappled: the event went with its id.
  soft::CmCommandReply& event = message.event.reply;
  soft::Problem problem;
  if (!is_whole) error = carry_out(fd, command, request, event, problem);
  if (!is_whole && error != 0 && error != EAGAIN && error != EFAULT) put_back_byte(fd, request.channel);
  if (error == 0) explain_event(request.channel, event);
  if (is_whole && message.is_removal()) await_lines();
  return error;
}

// 0, or the errno for the program; kNoDoor.
int get_event(int fd, const RdmaCmCommand& command, soft::CmCommandRequest& request) {
  for (bool first = true;; first = false) {
    // A handler of a signal ends or restarts this as it does the kernel's wait. A thread that is cancelled here leaves
    // the message for others.
    char byte;
    const ssize_t size = recv(fd, &byte, sizeof byte, MSG_PEEK);
    if (first && size < 0 && (errno == EBADF || errno == ENOTSOCK)) return kNoDoor;
    // 0: no process holds dappled's end any more.
    int error = size < 0 ? errno : ENODEV;
    if (size > 0) error = take_event(fd, command, request);
    if (size > 0 && error == EAGAIN) continue;
    if (error == 0 || error == EINTR || is_open(fd, request.channel)) return error;
    return wait_for_nothing();
  }
}

// Finds the channel that the id leaves.
int find_source(const RdmaCmCommand& command, soft::CmCommandRequest& request) {
  const int fd = static_cast<int>(command.source);
  if (real.fcntl(fd, F_GETFD) < 0) return EBADF;
  Door door;
  if (!find(fd, door) || door.kind != Kind::kRdmaCm) return EINVAL;
  request.source = door.channel;
  return 0;
}

// 0, or the errno for the program.
int open_channel(int flags, int& fd) {
  soft::Problem problem;
  soft::DaemonLink* link = connection(problem);
  if (link == nullptr) {
    complain(problem);
    return ENODEV;
  }
  begin_capture(*link);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  if ((flags & O_NONBLOCK) != 0) real.fcntl(ends[0], F_SETFL, O_RDWR | O_NONBLOCK);
  Door door = {.kind = Kind::kRdmaCm};
  soft::OwnedFd journal;
  const unsigned before = connection_number();
  if (!link->cm_open(ends[1], door.channel, journal, problem)) {
    // librdmacm tries other names and reports them.
    complain(problem);
    close(ends[0]);
    close(ends[1]);
    return problem.error != 0 ? problem.error : ENODEV;
  }
  // Without the mapping, dappled's messages are single bytes.
  void* front = mmap(nullptr, kFrontSize, PROT_READ | PROT_WRITE, MAP_SHARED, journal.get(), 0);
  if (front != MAP_FAILED) door.front = static_cast<soft::CmFront*>(front);
  door.attached[0] = hide(ends[1]);
  door.attached[1] = hide(journal.release());
  if (!track(ends[0], door)) {
    close(ends[0]);
    for (const int attached : door.attached) close_hidden(attached);
    if (door.front != nullptr) munmap(door.front, kFrontSize);
    return EMFILE;
  }
  restore_if_missed(door, before);
  if (door.front != nullptr) door.front->takes_events.store(1);
  fd = ends[0];
  return 0;
}

}  // namespace

void hold_events() {
  taking.lock();
}

void release_events() {
  taking.unlock();
}

int rdma_cm_open(int flags) {
  int fd = -1;
  int error;
  {
    const CancelGuard whole;
    const SignalGuard quiet;
    error = open_channel(flags, fd);
  }
  if (error != 0) return refuse(error);
  watch_connection();
  cm_begins();
  return fd;
}

ssize_t rdma_cm_write(int fd, const Door& door, const void* bytes, size_t size) {
  // A child that was made without the C library's fork() has the parent's connection. Such a child may have closed the
  // channel and opened another file, which the table does not show.
  if (!has_own_memory()) return is_open(fd, door.channel) ? refuse(EACCES) : kNoDoor;
  know_stack();
  RdmaCmCommand command;
  soft::CmCommandRequest request;
  request.channel = door.channel;
  int error = read_command(bytes, size, command, request);
  // Only a question about an id of this channel has an answer here.
  if (int known = 0; error == 0 && know(command, door.channel, known)) {
    return known != 0 ? refuse(known) : static_cast<ssize_t>(size);
  }
  // A wait for an event looks at the descriptor itself.
  const bool waits = error == 0 && command.header.cmd == RDMA_USER_CM_CMD_GET_EVENT;
  if (!waits && !is_open(fd, door.channel)) return kNoDoor;
  if (error == 0 && command.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) error = find_source(command, request);
  if (error != 0) return refuse(error);
  watch_connection();
  if (error = planned_error(command.header.cmd); error != 0) {
    trace_command(command.header.cmd, command.id, error);
    explain_planned(command, error);
  } else if (waits) {
    error = get_event(fd, command, request);
    if (error == kNoDoor) return kNoDoor;
  } else {
    const CancelGuard whole;
    const SignalGuard quiet;
    const bool removes = command.header.cmd == RDMA_USER_CM_CMD_DESTROY_ID ||
                         command.header.cmd == RDMA_USER_CM_CMD_LEAVE_MCAST ||
                         command.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID;
    std::unique_lock lock(taking, std::defer_lock);
    if (removes) lock.lock();
    soft::CmCommandReply reply;
    soft::Problem problem;
    error = carry_out(fd, command, request, reply, problem);
    if (removes) lock.unlock();
    trace_command(command.header.cmd, command.id, error);
    if (error != 0) explain_refusal(command, error, problem.line);
  }
  return error != 0 ? refuse(error) : static_cast<ssize_t>(size);
}

}  // namespace dapple::doors
