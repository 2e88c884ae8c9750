// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/threads/host.hpp"
#include "tests/sim/threads/machine.hpp"

namespace dapple::sim {

class SimulatedKernel final : public Kernel {
 public:
  explicit SimulatedKernel(Machine& machine);

  class File;
  struct Epoll;

  // Something has moved on: no thread spins in vain.
  void progress();
  // The kernel does not begin to refuse membarrier(), after which a thread waits for milliseconds instead.
  void keep_membarrier() { refuses_barriers_ = false; }
  void have_membarrier() {
    has_membarrier_ = true;
    refuses_barriers_ = false;
  }
  // A process that copies to or from this memory breaks a rule.
  void forbid(const void* begin, size_t size, bool forbidden);

  int eventfd(unsigned count) override;
  int timerfd() override;
  int timerfd_settime(int fd, const itimerspec* time) override;
  int pipe(int ends[2]) override;
  int memfd() override;
  int set_size(int fd, size_t size) override;
  int status(int fd, struct stat* status) override;
  int control(int fd, int command, long argument) override;
  void* map(void* address, size_t size, int protection, int flags, int fd, off_t offset) override;
  int unmap(void* address, size_t size) override;
  int close(int fd) override;
  ssize_t read(int fd, void* to, size_t size) override;
  ssize_t write(int fd, const void* from, size_t size) override;
  int socket() override;
  int bind(int fd, const char* name, size_t size) override;
  int listen(int fd) override;
  int connect(int fd, const char* name, size_t size) override;
  int accept(int fd) override;
  int shutdown(int fd, int how) override;
  int peer(int fd) override;
  ssize_t send(int fd, const iovec* parts, size_t count, const int* files, size_t file_count) override;
  ssize_t receive(int fd, void* to, size_t size, int flags, int* files, size_t& file_count) override;
  int epoll_create() override;
  int epoll_ctl(int fd, int operation, int watched, epoll_event* event) override;
  int epoll_wait(int fd, epoll_event* events, int count) override;
  int poll(pollfd* fds, nfds_t count, const timespec* timeout) override;
  void sleep(uint64_t duration) override;
  void yield() override;
  uint64_t now() override;
  void random(void* to, size_t size) override;
  int membarrier(int command) override;
  void copy(void* to, const void* from, size_t size) override;
  int process() override;
  void lock(void* mutex) override;
  bool try_lock(void* mutex) override;
  void unlock(void* mutex) override;
  void start_thread(void* (*run)(void*), void* argument) override;
  void read_plainly(const void* from, size_t size, const void* site) override;
  void written_plainly(void* to, size_t size, const void* site) override;
  void allocated(void* memory, size_t size) override;
  void freed(void* memory, size_t size, const void* site) override;

 private:
  struct Lock {
    bool is_held = false;
    Knowledge knowledge;
  };
  struct Effort {
    uint64_t in_vain = 0;  // calls of poll() that did not sleep, since then
    uint64_t since = 0;    // the thread's steps when it last slept, or when the world moved on
  };

  int add(std::shared_ptr<File> file);
  std::shared_ptr<File> find(int fd);
  // The line of the call identifies it.
  void enter(int line = __builtin_LINE());
  void check_copy(const void* begin, size_t size);
  void watch_for_spinning(bool polls_in_vain = false);
  void has_slept();

  Machine& machine_;
  bool has_membarrier_ = true;
  bool refuses_barriers_ = false;  // by a filter that the program has installed since
  std::vector<std::shared_ptr<File>> files_;
  std::map<void*, Lock> locks_;
  std::map<void*, size_t> shared_;  // mappings of files
  std::map<const std::byte*, size_t> forbidden_;
  std::vector<Epoch> copies_;  // their ends
  Effort efforts_[kMaxThreads];
};

}  // namespace dapple::sim
