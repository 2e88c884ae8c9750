// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface between the simulator and a module, which has instrumented code: the product's, and the scenarios that
// drive it. The simulator loads a module once for each process of the world, so each has its own static variables.
#pragma once

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

namespace dapple::sim {

// The kernel's calls, as the C library declares them. Simulated descriptors have numbers from kFirstDescriptor on.
inline constexpr int kFirstDescriptor = 100'000;

class Kernel {
 public:
  virtual int eventfd(unsigned count) = 0;
  virtual int timerfd() = 0;
  virtual int timerfd_settime(int fd, const itimerspec* time) = 0;
  virtual int pipe(int ends[2]) = 0;
  virtual int memfd() = 0;
  virtual int set_size(int fd, size_t size) = 0;
  virtual int status(int fd, struct stat* status) = 0;
  virtual int control(int fd, int command, long argument) = 0;
  virtual void* map(void* address, size_t size, int protection, int flags, int fd, off_t offset) = 0;
  virtual int unmap(void* address, size_t size) = 0;
  virtual int close(int fd) = 0;
  virtual ssize_t read(int fd, void* to, size_t size) = 0;
  virtual ssize_t write(int fd, const void* from, size_t size) = 0;
  virtual int socket() = 0;
  virtual int bind(int fd, const char* name, size_t size) = 0;
  virtual int listen(int fd) = 0;
  virtual int connect(int fd, const char* name, size_t size) = 0;
  virtual int accept(int fd) = 0;
  virtual int shutdown(int fd, int how) = 0;
  virtual int peer(int fd) = 0;  // its process
  virtual ssize_t send(int fd, const iovec* parts, size_t count, const int* files, size_t file_count) = 0;
  virtual ssize_t receive(int fd, void* to, size_t size, int flags, int* files, size_t& file_count) = 0;
  virtual int epoll_create() = 0;
  virtual int epoll_ctl(int fd, int operation, int watched, epoll_event* event) = 0;
  virtual int epoll_wait(int fd, epoll_event* events, int count) = 0;
  virtual int poll(pollfd* fds, nfds_t count, const timespec* timeout) = 0;
  virtual void sleep(uint64_t nanoseconds) = 0;
  virtual void yield() = 0;
  virtual uint64_t now() = 0;
  virtual void random(void* to, size_t size) = 0;
  virtual int membarrier(int command) = 0;
  virtual void copy(void* to, const void* from, size_t size) = 0;  // between processes
  virtual int process() = 0;

  virtual void lock(void* mutex) = 0;
  virtual bool try_lock(void* mutex) = 0;
  virtual void unlock(void* mutex) = 0;
  virtual void start_thread(void* (*run)(void*), void* argument) = 0;

  virtual void read_plainly(const void* from, size_t size, const void* site) = 0;
  virtual void written_plainly(void* to, size_t size, const void* site) = 0;
  virtual void allocated(void* memory, size_t size) = 0;
  virtual void freed(void* memory, size_t size, const void* site) = 0;

 protected:
  ~Kernel() = default;
};

// The simulator, as a scenario sees it.
class Host {
 public:
  [[noreturn]] virtual void fail(const char* format, ...) __attribute__((format(printf, 2, 3))) = 0;
  virtual void note(const char* format, ...) __attribute__((format(printf, 2, 3))) = 0;
  virtual uint64_t below(uint64_t count) = 0;
  virtual uint64_t now() = 0;  // nanoseconds
  virtual void name(const void* begin, size_t size, const char* text) = 0;
  virtual void spawn(const char* name, int process, void (*run)(void*), void* argument) = 0;
  // The run may end while the calling thread waits.
  virtual void become_service() = 0;
  virtual void await_all() = 0;
  // Numbers by which threads of a scenario wait for each other; they begin as 0.
  virtual void set(uint32_t number, uint64_t value) = 0;
  virtual uint64_t add(uint32_t number, uint64_t value) = 0;  // returns the sum
  virtual uint64_t get(uint32_t number) = 0;
  virtual void await(uint32_t number, uint64_t least) = 0;
  // No process may copy to or from this memory as long as it is forbidden.
  virtual void forbid(const void* begin, size_t size, bool forbidden) = 0;
  // The calling thread has done something that the world waits for.
  virtual void progress() = 0;
  // No other program takes a thread's CPU for longer, in nanoseconds, so times have a meaning. 0: never.
  virtual void limit_pauses(uint64_t longest) = 0;
  // The kernel has membarrier(). Otherwise some kernels lack it, and some refuse it later.
  virtual void have_membarrier() = 0;
  virtual void set_limit(uint64_t steps) = 0;

 protected:
  ~Host() = default;
};

extern "C" {
__attribute__((visibility("default"))) Kernel* sim_kernel();
__attribute__((visibility("default"))) Host* sim_host();
}

// A scenario runs in a process of its own for each seed. It returns if all rules were kept.
struct Scenario {
  enum class Kind : uint8_t {
    kRules,       // no seed breaks a rule
    kImpossible,  // a test of the model: no seed has the outcome
    kPossible,    // the same: some seed has it
  };
  const char* name;
  Kind kind;
  void (*run)(size_t argument);
  size_t argument;
};

// A module's only exported symbol is a pointer to it, sim_module.
struct Module {
  const Scenario* scenarios;
  size_t scenario_count;
  // Runs a program in the module's process. The scenario that passes `argument` knows its type.
  void (*run_program)(void* argument);
  // The same module, loaded for the second process.
  const Module* peer;
};

}  // namespace dapple::sim
