// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel of the simulated machine: descriptors, sockets, epoll, sleep, locks. Each object passes on what its users
// know, and nothing more: a thread that is woken by one event does not learn what another event would have told it.
#include "tests/sim/threads/kernel.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

extern "C" int sim_is_unseen();

namespace dapple::sim {
namespace {

constexpr size_t kMaxQueued = 64;   // messages in a socket
constexpr uint64_t kSpins = 20000;  // steps of a thread without progress or sleep
constexpr uint64_t kPollsInVain = 100;
constexpr uint64_t kRarity = 4;  // of slow calls
// One kernel in that many has no membarrier(), and one in that many refuses it later. One event in that many is over.
constexpr uint64_t kWithoutBarriers = 4, kRefusals = 8, kOverEvents = 8;

int refuse(int error) {
  errno = error;
  return -1;
}

uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

// --- Files

// What a descriptor refers to.
class SimulatedKernel::File {
 public:
  virtual ~File() = default;
  virtual short events() { return 0; }  // of poll()
  virtual ssize_t read(Machine&, void*, size_t) { return refuse(EINVAL); }
  virtual ssize_t write(Machine&, const void*, size_t) { return refuse(EINVAL); }
  virtual void closed() {}
  Knowledge knowledge;
};

namespace {

using File = SimulatedKernel::File;

struct EventFd final : File {
  uint64_t count = 0;
  short events() override { return static_cast<short>((count != 0 ? POLLIN : 0) | POLLOUT); }
  ssize_t read(Machine& machine, void* to, size_t) override {
    if (count == 0) return refuse(EAGAIN);
    memcpy(to, &count, sizeof count);
    count = 0;
    machine.memory.acquire(machine.self(), knowledge);
    return sizeof count;
  }
  ssize_t write(Machine& machine, const void* from, size_t) override {
    uint64_t added;
    memcpy(&added, from, sizeof added);
    count += added;
    machine.memory.release(machine.self(), knowledge);
    return sizeof added;
  }
};

struct TimerFd final : File {
  explicit TimerFd(Machine& machine) : machine_(machine) {}
  uint64_t end = kNever;
  short events() override { return end <= machine_.scheduler.now() ? POLLIN : 0; }
  ssize_t read(Machine&, void* to, size_t) override {
    if (events() == 0) return refuse(EAGAIN);
    end = kNever;
    const uint64_t one = 1;
    memcpy(to, &one, sizeof one);
    return sizeof one;
  }

 private:
  Machine& machine_;
};

struct MemoryFile final : File {
  size_t size = 0;
  int seals = 0;
  void* memory = nullptr;  // both processes' mapping of it
};

struct Message {
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<File>> files;
  Knowledge knowledge;
};

// One end of a connection, or of a pipe.
struct Socket final : File {
  std::deque<Message> received;
  std::weak_ptr<Socket> other;
  int owner = 0;
  int peer = 0;
  bool ended = false;  // the other end sends no more
  // A listener's.
  std::string name;
  bool listens = false;
  std::deque<std::shared_ptr<Socket>> waiting;

  short events() override {
    short ready = 0;
    if (!received.empty() || !waiting.empty() || ended) ready |= POLLIN;
    if (ended) ready |= POLLRDHUP;
    return ready;
  }
  void end_other() {
    if (const auto to = other.lock()) to->ended = true;
  }
  void closed() override { end_other(); }
  ssize_t write(Machine& machine, const void* from, size_t size) override {
    Message message;
    message.bytes.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + size);
    return send(machine, std::move(message));
  }
  ssize_t send(Machine& machine, Message message) {
    const auto to = other.lock();
    if (to == nullptr || to->closed_) return refuse(EPIPE);
    if (to->received.size() >= kMaxQueued) return refuse(EAGAIN);
    machine.memory.release(machine.self(), message.knowledge);
    const auto size = static_cast<ssize_t>(message.bytes.size());
    to->received.push_back(std::move(message));
    return size;
  }
  ssize_t read(Machine& machine, void* to, size_t size) override {
    std::vector<std::shared_ptr<File>> files;
    return receive(machine, to, size, false, files);
  }
  // A stream: bytes of several messages, but none behind one with descriptors.
  ssize_t receive(Machine& machine, void* to, size_t size, bool peek, std::vector<std::shared_ptr<File>>& files) {
    if (received.empty()) return ended ? 0 : refuse(EAGAIN);
    size_t got = 0;
    for (size_t i = 0; i < received.size() && got < size;) {
      Message& message = received[i];
      if (got > 0 && !message.files.empty()) break;
      machine.memory.acquire(machine.self(), message.knowledge);
      const size_t part = std::min(size - got, message.bytes.size());
      memcpy(static_cast<std::byte*>(to) + got, message.bytes.data(), part);
      got += part;
      const bool had_files = !message.files.empty();
      if (peek) {
        i++;
      } else {
        files.insert(files.end(), message.files.begin(), message.files.end());
        message.files.clear();
        message.bytes.erase(message.bytes.begin(), message.bytes.begin() + static_cast<ptrdiff_t>(part));
        if (message.bytes.empty()) received.pop_front();
        if (part < size && got < size && received.empty()) break;
      }
      if (had_files) break;
    }
    return static_cast<ssize_t>(got);
  }
  bool closed_ = false;
};

}  // namespace

struct SimulatedKernel::Epoll final : File {
  struct Watched {
    std::weak_ptr<File> file;
    int fd = 0;
    epoll_event event = {};
  };
  std::vector<Watched> watched;

  static uint32_t ready(const Watched& entry) {
    const auto file = entry.file.lock();
    return file == nullptr ? 0 : static_cast<uint32_t>(file->events()) & entry.event.events;
  }
  short events() override {
    for (const Watched& entry : watched)
      if (ready(entry) != 0) return POLLIN;
    return 0;
  }
};

SimulatedKernel::SimulatedKernel(Machine& machine) : machine_(machine) {
  has_membarrier_ = machine.random.below(kWithoutBarriers) != 0;
  refuses_barriers_ = machine.random.below(kRefusals) == 0;
}

int SimulatedKernel::add(std::shared_ptr<File> file) {
  size_t place = 0;
  while (place < files_.size() && files_[place] != nullptr) place++;
  if (place == files_.size()) files_.emplace_back();
  files_[place] = std::move(file);
  return kFirstDescriptor + static_cast<int>(place);
}

std::shared_ptr<SimulatedKernel::File> SimulatedKernel::find(int fd) {
  const auto place = static_cast<size_t>(fd - kFirstDescriptor);
  return place < files_.size() ? files_[place] : nullptr;
}

int SimulatedKernel::process() {
  return static_cast<int>(machine_.scheduler.thread(machine_.self()).process);
}

// A call takes some time, and others run meanwhile.
void SimulatedKernel::enter(int line) {
  machine_.point(static_cast<uint64_t>(line), kRarity);
  watch_for_spinning();
}

// Somebody has received a packet, or done something else that moves the world on.
void SimulatedKernel::progress() {
  for (Effort& effort : efforts_) effort = {};
  for (uint32_t i = 0; i < machine_.scheduler.count(); i++) efforts_[i].since = machine_.scheduler.thread(i).steps;
}

void SimulatedKernel::watch_for_spinning(bool polls_in_vain) {
  const Scheduler::Thread& thread = machine_.scheduler.thread(machine_.self());
  if (!thread.is_service) return;
  const Effort& effort = efforts_[machine_.self()];
  if (polls_in_vain || thread.steps - effort.since > kSpins)
    machine_.fail("%s spins without progress", thread.name.c_str());
}

void SimulatedKernel::has_slept() {
  efforts_[machine_.self()] = {.in_vain = 0, .since = machine_.scheduler.thread(machine_.self()).steps};
}

int SimulatedKernel::eventfd(unsigned count) {
  auto made = std::make_shared<EventFd>();
  made->count = count;
  return add(std::move(made));
}

int SimulatedKernel::timerfd() {
  return add(std::make_shared<TimerFd>(machine_));
}

int SimulatedKernel::timerfd_settime(int fd, const itimerspec* time) {
  static_cast<TimerFd&>(*find(fd)).end = machine_.scheduler.now() + nanoseconds(time->it_value);
  return 0;
}

int SimulatedKernel::pipe(int ends[2]) {
  auto reader = std::make_shared<Socket>(), writer = std::make_shared<Socket>();
  reader->other = writer;
  writer->other = reader;
  // The writing end has the next number.
  ends[0] = kFirstDescriptor + static_cast<int>(files_.size());
  ends[1] = ends[0] + 1;
  files_.push_back(std::move(reader));
  files_.push_back(std::move(writer));
  return 0;
}

int SimulatedKernel::memfd() {
  return add(std::make_shared<MemoryFile>());
}

int SimulatedKernel::set_size(int fd, size_t size) {
  static_cast<MemoryFile&>(*find(fd)).size = size;
  return 0;
}

int SimulatedKernel::status(int fd, struct stat* status) {
  const auto& file = static_cast<MemoryFile&>(*find(fd));
  *status = {};
  status->st_size = static_cast<off_t>(file.size);
  status->st_blocks = static_cast<blkcnt_t>((file.size + 511) / 512);
  return 0;
}

int SimulatedKernel::control(int fd, int command, long argument) {
  if (command == F_ADD_SEALS) static_cast<MemoryFile&>(*find(fd)).seals |= static_cast<int>(argument);
  if (command == F_GET_SEALS) return static_cast<MemoryFile&>(*find(fd)).seals;
  return 0;
}

// All mappings of a file are one, so an address identifies the memory.
void* SimulatedKernel::map(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd < kFirstDescriptor) return ::mmap(address, size, protection, flags, fd, offset);
  auto& file = static_cast<MemoryFile&>(*find(fd));
  if (file.memory == nullptr)
    file.memory = ::mmap(nullptr, file.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  shared_.emplace(file.memory, file.size);
  return file.memory;
}

int SimulatedKernel::unmap(void* address, size_t size) {
  return shared_.count(address) != 0 ? 0 : ::munmap(address, size);
}

int SimulatedKernel::close(int fd) {
  enter();
  const auto place = static_cast<size_t>(fd - kFirstDescriptor);
  if (place >= files_.size() || files_[place] == nullptr) return refuse(EBADF);
  const std::shared_ptr<File> file = std::exchange(files_[place], nullptr);
  const bool is_last = std::find(files_.begin(), files_.end(), file) == files_.end();
  if (is_last) {
    if (auto* socket = dynamic_cast<Socket*>(file.get())) socket->closed_ = true;
    file->closed();
  }
  return 0;
}

ssize_t SimulatedKernel::read(int fd, void* to, size_t size) {
  enter();
  const std::shared_ptr<File> file = find(fd);
  return file == nullptr ? refuse(EBADF) : file->read(machine_, to, size);
}

ssize_t SimulatedKernel::write(int fd, const void* from, size_t size) {
  enter();
  const std::shared_ptr<File> file = find(fd);
  return file == nullptr ? refuse(EBADF) : file->write(machine_, from, size);
}

int SimulatedKernel::socket() {
  auto made = std::make_shared<Socket>();
  made->owner = process();
  return add(std::move(made));
}

int SimulatedKernel::bind(int fd, const char* name, size_t size) {
  static_cast<Socket&>(*find(fd)).name.assign(name, size);
  return 0;
}

int SimulatedKernel::listen(int fd) {
  static_cast<Socket&>(*find(fd)).listens = true;
  return 0;
}

int SimulatedKernel::connect(int fd, const char* name, size_t size) {
  enter();
  const std::string wanted(name, size);
  for (const auto& file : files_) {
    auto* listener = dynamic_cast<Socket*>(file.get());
    if (listener == nullptr || !listener->listens || listener->name != wanted) continue;
    const auto own = std::static_pointer_cast<Socket>(find(fd));
    auto accepted = std::make_shared<Socket>();
    own->other = accepted;
    accepted->other = own;
    accepted->owner = own->peer = listener->owner;
    accepted->peer = own->owner;
    machine_.memory.release(machine_.self(), accepted->knowledge);
    listener->waiting.push_back(std::move(accepted));
    return 0;
  }
  return refuse(ECONNREFUSED);
}

int SimulatedKernel::accept(int fd) {
  enter();
  auto& listener = static_cast<Socket&>(*find(fd));
  if (listener.waiting.empty()) return refuse(EAGAIN);
  std::shared_ptr<Socket> accepted = std::move(listener.waiting.front());
  listener.waiting.pop_front();
  machine_.memory.acquire(machine_.self(), accepted->knowledge);
  return add(std::move(accepted));
}

int SimulatedKernel::shutdown(int fd, int) {
  enter();
  static_cast<Socket&>(*find(fd)).end_other();
  return 0;
}

int SimulatedKernel::peer(int fd) {
  return static_cast<Socket&>(*find(fd)).peer;
}

ssize_t SimulatedKernel::send(int fd, const iovec* parts, size_t count, const int* files, size_t file_count) {
  enter();
  Message message;
  for (size_t i = 0; i < count; i++) {
    const auto* from = static_cast<const std::byte*>(parts[i].iov_base);
    message.bytes.insert(message.bytes.end(), from, from + parts[i].iov_len);
  }
  for (size_t i = 0; i < file_count; i++) message.files.push_back(find(files[i]));
  auto* socket = dynamic_cast<Socket*>(find(fd).get());
  return socket == nullptr ? refuse(EBADF) : socket->send(machine_, std::move(message));
}

ssize_t SimulatedKernel::receive(int fd, void* to, size_t size, int flags, int* files, size_t& file_count) {
  enter();
  std::vector<std::shared_ptr<File>> received;
  auto* socket = dynamic_cast<Socket*>(find(fd).get());
  if (socket == nullptr) return refuse(EBADF);
  const ssize_t got = socket->receive(machine_, to, size, (flags & MSG_PEEK) != 0, received);
  const size_t room = file_count;
  file_count = 0;
  for (auto& file : received)
    if (file_count < room) files[file_count++] = add(std::move(file));
  return got;
}

int SimulatedKernel::epoll_create() {
  return add(std::make_shared<Epoll>());
}

int SimulatedKernel::epoll_ctl(int fd, int operation, int watched, epoll_event* event) {
  auto& epoll = static_cast<Epoll&>(*find(fd));
  const std::shared_ptr<File> file = find(watched);
  const auto found = std::find_if(epoll.watched.begin(), epoll.watched.end(),
                                  [&](const Epoll::Watched& entry) { return entry.file.lock() == file; });
  if (operation == EPOLL_CTL_ADD) {
    epoll.watched.push_back({file, watched, *event});
  } else if (found == epoll.watched.end()) {
    return refuse(ENOENT);
  } else if (operation == EPOLL_CTL_MOD) {
    found->event = *event;
  } else {
    epoll.watched.erase(found);
  }
  return 0;
}

// A thread may look at an event when it is over: in the meantime another descriptor may have taken the place of the one
// that had it.
int SimulatedKernel::epoll_wait(int fd, epoll_event* events, int count) {
  enter();
  auto& epoll = static_cast<Epoll&>(*find(fd));
  int found = 0;
  for (const Epoll::Watched& entry : epoll.watched) {
    if (found == count) break;
    uint32_t ready = Epoll::ready(entry);
    if (ready == 0 && machine_.random.below(kOverEvents) == 0) ready = POLLIN & entry.event.events;
    if (ready != 0) {
      events[found] = entry.event;
      events[found++].events = ready;
    }
  }
  return found;
}

int SimulatedKernel::poll(pollfd* fds, nfds_t count, const timespec* timeout) {
  enter();
  const auto look = [&] {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
      fds[i].revents = 0;
      const std::shared_ptr<File> file = fds[i].fd < 0 ? nullptr : find(fds[i].fd);
      if (file != nullptr) fds[i].revents = static_cast<short>(file->events() & (fds[i].events | POLLHUP));
      ready += fds[i].revents != 0;
    }
    return ready;
  };
  const uint64_t start = machine_.scheduler.now();
  const uint64_t end = timeout == nullptr ? kNever : start + nanoseconds(*timeout);
  if (look() == 0 && (timeout == nullptr || nanoseconds(*timeout) != 0)) {
    machine_.note("sleeps in poll(), %s", timeout == nullptr ? "for ever" : "for a time");
    machine_.scheduler.wait([&] { return look() != 0; }, end, "an event");
    machine_.memory.now = machine_.scheduler.now();
    has_slept();
    machine_.note("wakes");
  } else if (efforts_[machine_.self()].in_vain++ > kPollsInVain) {
    watch_for_spinning(true);
  }
  return look();
}

void SimulatedKernel::sleep(uint64_t duration) {
  enter();
  machine_.note("sleeps for %lu ns", duration);
  machine_.scheduler.wait([] { return false; }, machine_.scheduler.now() + duration, "the end of its sleep");
  machine_.memory.now = machine_.scheduler.now();
  has_slept();
}

void SimulatedKernel::yield() {
  watch_for_spinning();
  machine_.scheduler.yield();
  machine_.memory.now = machine_.scheduler.now();
}

uint64_t SimulatedKernel::now() {
  return machine_.scheduler.now();
}

void SimulatedKernel::random(void* to, size_t size) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < size; i++) bytes[i] = static_cast<unsigned char>(machine_.random.next());
}

// Each thread of the process executes a full fence: the kernel interrupts those that run, and the others have stopped.
int SimulatedKernel::membarrier(int command) {
  enter();
  const bool executes = command == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  if (!has_membarrier_ || (executes && refuses_barriers_)) return refuse(EPERM);
  if (!executes) return 0;
  std::vector<uint32_t> threads;
  for (uint32_t i = 0; i < machine_.scheduler.count(); i++) {
    const Scheduler::Thread& thread = machine_.scheduler.thread(i);
    if (static_cast<int>(thread.process) == process()) threads.push_back(i);
  }
  machine_.memory.fence_all(threads);
  machine_.note("makes all threads of its process execute a fence");
  return 0;
}

void SimulatedKernel::forbid(const void* begin, size_t size, bool forbidden) {
  if (!forbidden) {
    forbidden_.erase(static_cast<const std::byte*>(begin));
    return;
  }
  forbidden_[static_cast<const std::byte*>(begin)] = size;
  for (const Epoch copy : copies_)
    if (!machine_.memory.knows(machine_.self(), copy))
      machine_.fail("the memory's owner does not know that a copy is over");
  copies_.clear();
}

void SimulatedKernel::check_copy(const void* begin, size_t size) {
  const auto* from = static_cast<const std::byte*>(begin);
  for (const auto& [memory, bytes] : forbidden_)
    if (from < memory + bytes && memory < from + size)
      machine_.fail("process %d copies to or from memory that is not its any more", process());
}

// Word by word, without any order.
void SimulatedKernel::copy(void* to, const void* from, size_t size) {
  constexpr size_t kWord = sizeof(uint64_t);
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const bool has_words = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % kWord == 0;
  enter();
  for (size_t done = 0; done < size;) {
    const size_t step = has_words && size - done >= kWord ? kWord : 1;
    check_copy(target + done, step);
    check_copy(source + done, step);
    uint64_t value = 0;
    if (machine_.is_own_stack(source + done)) {
      memcpy(&value, source + done, step);
    } else {
      value = machine_.memory.load(machine_.self(), source + done, step, std::memory_order_relaxed, nullptr).value;
    }
    if (machine_.is_own_stack(target + done)) {
      memcpy(target + done, &value, step);
    } else {
      machine_.memory.store(machine_.self(), target + done, step, value, std::memory_order_relaxed, nullptr);
    }
    done += step;
    if (done % 64 == 0) machine_.point();
  }
  copies_.push_back(machine_.memory.epoch(machine_.self()));
}

// --- Locks and threads

void SimulatedKernel::lock(void* mutex) {
  machine_.point();
  Lock& lock = locks_[mutex];
  while (lock.is_held) machine_.scheduler.wait([&] { return !lock.is_held; }, kNever, "a mutex");
  machine_.memory.now = machine_.scheduler.now();
  lock.is_held = true;
  machine_.memory.acquire(machine_.self(), lock.knowledge);
}

bool SimulatedKernel::try_lock(void* mutex) {
  machine_.point();
  Lock& lock = locks_[mutex];
  if (lock.is_held) return false;
  lock.is_held = true;
  machine_.memory.acquire(machine_.self(), lock.knowledge);
  return true;
}

void SimulatedKernel::unlock(void* mutex) {
  Lock& lock = locks_[mutex];
  machine_.memory.release(machine_.self(), lock.knowledge);
  lock.is_held = false;
  machine_.point();
}

void SimulatedKernel::start_thread(void* (*run)(void*), void* argument) {
  machine_.point();
  const uint32_t number =
      machine_.spawn("background", static_cast<uint32_t>(process()), [run, argument] { run(argument); });
  machine_.scheduler.thread(number).is_service = true;
}

// --- Plain memory

void SimulatedKernel::read_plainly(const void* from, size_t size, const void* site) {
  if (sim_is_unseen() == 0 && !machine_.is_own_stack(from))
    machine_.memory.plain_read(machine_.self(), from, size, site);
}

void SimulatedKernel::written_plainly(void* to, size_t size, const void* site) {
  if (sim_is_unseen() == 0 && !machine_.is_own_stack(to)) machine_.memory.plain_write(machine_.self(), to, size, site);
}

void SimulatedKernel::allocated(void* memory, size_t size) {
  machine_.memory.forget(memory, size);
}

void SimulatedKernel::freed(void* memory, size_t size, const void* site) {
  machine_.memory.plain_write(machine_.self(), memory, size, site);
  machine_.memory.forget(memory, size);
}

}  // namespace dapple::sim
