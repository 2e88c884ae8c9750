// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of the C library by which a module reaches the kernel and the memory. The linker takes these hidden
// ones, so the simulated kernel answers the product's unchanged calls.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "tests/sim/threads/host.hpp"

using dapple::sim::Kernel;
using dapple::sim::kFirstDescriptor;

namespace {

Kernel& kernel() {
  return *dapple::sim::sim_kernel();
}

pid_t number_of(int process) {
  return 100 + process;
}

bool simulated(int fd) {
  return fd >= kFirstDescriptor;
}

// The real one, for the few descriptors that are real.
template <typename... Arguments>
long real(long number, Arguments... arguments) {
  long result = 0;
  long registers[6] = {(long)arguments...};
  register long r10 asm("r10") = registers[3];
  register long r8 asm("r8") = registers[4];
  register long r9 asm("r9") = registers[5];
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(registers[0]), "S"(registers[1]), "d"(registers[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// process_vm_readv() and process_vm_writev(): both processes have one address space here.
long copy_between(const iovec* to, size_t to_count, const iovec* from, size_t from_count) {
  size_t to_part = 0, from_part = 0, to_done = 0, from_done = 0;
  long copied = 0;
  while (to_part < to_count && from_part < from_count) {
    const size_t size = std::min(to[to_part].iov_len - to_done, from[from_part].iov_len - from_done);
    if (size > 0)
      kernel().copy(static_cast<char*>(to[to_part].iov_base) + to_done,
                    static_cast<const char*>(from[from_part].iov_base) + from_done, size);
    copied += static_cast<long>(size);
    to_done += size;
    from_done += size;
    if (to_done == to[to_part].iov_len) to_part++, to_done = 0;
    if (from_done == from[from_part].iov_len) from_part++, from_done = 0;
  }
  return copied;
}

}  // namespace

extern "C" {

int poll(pollfd* fds, nfds_t count, int milliseconds) {
  const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  return kernel().poll(fds, count, milliseconds < 0 ? nullptr : &time);
}
int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t*) {
  return kernel().poll(fds, count, timeout);
}
int nanosleep(const timespec* time, timespec*) {
  kernel().sleep(static_cast<uint64_t>(time->tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time->tv_nsec));
  return 0;
}
int sched_yield() {
  kernel().yield();
  return 0;
}
int clock_gettime(clockid_t, timespec* time) noexcept {
  const uint64_t now = kernel().now();
  *time = {static_cast<time_t>(now / 1'000'000'000), static_cast<long>(now % 1'000'000'000)};
  return 0;
}
int clock_getres(clockid_t, timespec* time) noexcept {
  *time = {0, 1};
  return 0;
}

int eventfd(unsigned count, int) noexcept {
  return kernel().eventfd(count);
}
int timerfd_create(clockid_t, int) noexcept {
  return kernel().timerfd();
}
int timerfd_settime(int fd, int, const itimerspec* time, itimerspec*) noexcept {
  return kernel().timerfd_settime(fd, time);
}
int pipe2(int ends[2], int) noexcept {
  return kernel().pipe(ends);
}
int memfd_create(const char*, unsigned) noexcept {
  return kernel().memfd();
}
int ftruncate(int fd, off_t size) noexcept {
  return kernel().set_size(fd, static_cast<size_t>(size));
}
int fallocate(int fd, int, off_t offset, off_t size) {
  struct stat status;
  if (kernel().status(fd, &status) != 0) return -1;
  return status.st_size >= offset + size ? 0 : ftruncate(fd, offset + size);
}
int fstat(int fd, struct stat* status) noexcept {
  return simulated(fd) ? kernel().status(fd, status) : static_cast<int>(real(SYS_fstat, fd, status));
}
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return simulated(fd) ? kernel().control(fd, command, argument) : 0;
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return kernel().map(address, size, protection, flags, fd, offset);
}
int munmap(void* address, size_t size) noexcept {
  return kernel().unmap(address, size);
}
int madvise(void*, size_t, int) noexcept {
  return 0;
}
int close(int fd) {
  return simulated(fd) ? kernel().close(fd) : static_cast<int>(real(SYS_close, fd));
}
ssize_t read(int fd, void* to, size_t size) {
  return kernel().read(fd, to, size);
}
ssize_t write(int fd, const void* from, size_t size) {
  return simulated(fd) ? kernel().write(fd, from, size) : real(SYS_write, fd, from, size);
}
ssize_t getrandom(void* to, size_t size, unsigned) {
  kernel().random(to, size);
  return static_cast<ssize_t>(size);
}

int socket(int, int, int) noexcept {
  return kernel().socket();
}
int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  return kernel().bind(fd, reinterpret_cast<const char*>(address), size);
}
int listen(int fd, int) noexcept {
  return kernel().listen(fd);
}
int connect(int fd, const sockaddr* address, socklen_t size) {
  return kernel().connect(fd, reinterpret_cast<const char*>(address), size);
}
int accept4(int fd, sockaddr*, socklen_t*, int) {
  return kernel().accept(fd);
}
int shutdown(int fd, int how) noexcept {
  return kernel().shutdown(fd, how);
}
int getsockopt(int fd, int, int, void* value, socklen_t*) noexcept {
  auto& who = *static_cast<ucred*>(value);
  who = {number_of(kernel().peer(fd)), geteuid(), getegid()};
  return 0;
}
ssize_t send(int fd, const void* from, size_t size, int) {
  const iovec part = {const_cast<void*>(from), size};
  return kernel().send(fd, &part, 1, nullptr, 0);
}
ssize_t sendmsg(int fd, const msghdr* message, int) {
  const int* files = nullptr;
  size_t count = 0;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(message); rights != nullptr) {
    files = reinterpret_cast<const int*>(CMSG_DATA(rights));
    count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  }
  return kernel().send(fd, message->msg_iov, message->msg_iovlen, files, count);
}
ssize_t recv(int fd, void* to, size_t size, int flags) {
  size_t none = 0;
  return kernel().receive(fd, to, size, flags, nullptr, none);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  int files[8];
  size_t count = 8;
  const ssize_t size =
      kernel().receive(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, flags, files, count);
  if (size < 0 || count == 0) {
    message->msg_controllen = 0;
    return size;
  }
  cmsghdr* rights = CMSG_FIRSTHDR(message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(rights), files, count * sizeof(int));
  message->msg_controllen = CMSG_SPACE(count * sizeof(int));
  return size;
}
int epoll_create1(int) noexcept {
  return kernel().epoll_create();
}
int epoll_ctl(int fd, int operation, int watched, epoll_event* event) noexcept {
  return kernel().epoll_ctl(fd, operation, watched, event);
}
int epoll_wait(int fd, epoll_event* events, int count, int) {
  return kernel().epoll_wait(fd, events, count);
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (long& each : argument) each = va_arg(list, long);
  va_end(list);
  switch (number) {
    case SYS_membarrier:
      return kernel().membarrier(static_cast<int>(argument[0]));
    case SYS_process_vm_writev:
      return copy_between(reinterpret_cast<const iovec*>(argument[3]), static_cast<size_t>(argument[4]),
                          reinterpret_cast<const iovec*>(argument[1]), static_cast<size_t>(argument[2]));
    case SYS_process_vm_readv:
      return copy_between(reinterpret_cast<const iovec*>(argument[1]), static_cast<size_t>(argument[2]),
                          reinterpret_cast<const iovec*>(argument[3]), static_cast<size_t>(argument[4]));
    // The only real files are those of /proc/PID/mem, and both processes have one address space here.
    case SYS_openat:
      return real(SYS_openat, argument[0], reinterpret_cast<long>("/proc/self/mem"), argument[2]);
    case SYS_pwritev:
    case SYS_preadv: {
      long copied = 0;
      for (long i = 0; i < argument[2]; i++) {
        const iovec& own = reinterpret_cast<const iovec*>(argument[1])[i];
        const iovec other = {reinterpret_cast<void*>(argument[3] + copied), own.iov_len};
        copied += number == SYS_pwritev ? copy_between(&other, 1, &own, 1) : copy_between(&own, 1, &other, 1);
      }
      return copied;
    }
    case SYS_sched_getattr:
    case SYS_sched_setattr:
      errno = ENOSYS;
      return -1;
    default:
      return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  }
}
int prctl(int, ...) noexcept {
  return 0;
}
pid_t getpid() noexcept {
  return number_of(kernel().process());
}
// The environment of the person who runs the simulator has no influence.
char* secure_getenv(const char*) noexcept {
  return nullptr;
}
char* getenv(const char*) noexcept {
  return nullptr;
}
void* dlsym(void*, const char*) noexcept {
  return nullptr;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  kernel().lock(mutex);
  return 0;
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return kernel().try_lock(mutex) ? 0 : EBUSY;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  kernel().unlock(mutex);
  return 0;
}
int pthread_create(pthread_t*, const pthread_attr_t*, void* (*run)(void*), void* argument) noexcept {
  kernel().start_thread(run, argument);
  return 0;
}
int pthread_once(pthread_once_t* once, void (*run)()) {
  kernel().lock(once);
  if (std::exchange(*once, PTHREAD_ONCE_INIT + 1) == PTHREAD_ONCE_INIT) run();
  kernel().unlock(once);
  return 0;
}
int pthread_atfork(void (*)(), void (*)(), void (*)()) noexcept {
  return 0;
}
int pthread_sigmask(int, const sigset_t*, sigset_t*) noexcept {
  return 0;
}
int pthread_setcancelstate(int, int*) {
  return 0;
}

// --- Plain memory. The compiler must not make calls of these functions out of their loops.

#define NOTE_READ(from, size) kernel().read_plainly(from, size, __builtin_return_address(0))
#define NOTE_WRITE(to, size) kernel().written_plainly(to, size, __builtin_return_address(0))

void* memmove(void* to, const void* from, size_t size) noexcept {
  NOTE_READ(from, size);
  NOTE_WRITE(to, size);
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (target < source) {
    for (size_t i = 0; i < size; i++) target[i] = source[i];
  } else {
    for (size_t i = size; i > 0; i--) target[i - 1] = source[i - 1];
  }
  return to;
}
void* memcpy(void* to, const void* from, size_t size) noexcept {
  NOTE_READ(from, size);
  NOTE_WRITE(to, size);
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (size_t i = 0; i < size; i++) target[i] = source[i];
  return to;
}
void* memset(void* to, int value, size_t size) noexcept {
  NOTE_WRITE(to, size);
  auto* target = static_cast<char*>(to);
  for (size_t i = 0; i < size; i++) target[i] = static_cast<char>(value);
  return to;
}
int memcmp(const void* a, const void* b, size_t size) noexcept {
  NOTE_READ(a, size);
  NOTE_READ(b, size);
  const auto* first = static_cast<const unsigned char*>(a);
  const auto* second = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < size; i++)
    if (first[i] != second[i]) return first[i] - second[i];
  return 0;
}

}  // extern "C"

// --- The heap: memory that is used again has no past.

namespace {

void* allocate(size_t size, size_t alignment) noexcept {
  // The size is in front of the memory, for freed().
  const size_t front = std::max<size_t>(alignment, 16);
  auto* whole = static_cast<char*>(aligned_alloc(front, (front + size + front - 1) / front * front));
  if (whole == nullptr) return nullptr;
  char* memory = whole + front;
  reinterpret_cast<size_t*>(memory)[-1] = size;
  kernel().allocated(memory, size);
  return memory;
}

void give_back(void* memory, size_t alignment, const void* site) noexcept {
  if (memory == nullptr) return;
  kernel().freed(memory, reinterpret_cast<size_t*>(memory)[-1], site);
  free(static_cast<char*>(memory) - std::max<size_t>(alignment, 16));
}

}  // namespace

void* operator new(size_t size) {
  return allocate(size, 16);
}
void* operator new[](size_t size) {
  return allocate(size, 16);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 16);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 16);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  give_back(memory, 16, __builtin_return_address(0));
}
void operator delete[](void* memory) noexcept {
  give_back(memory, 16, __builtin_return_address(0));
}
void operator delete(void* memory, size_t) noexcept {
  give_back(memory, 16, __builtin_return_address(0));
}
void operator delete[](void* memory, size_t) noexcept {
  give_back(memory, 16, __builtin_return_address(0));
}
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  give_back(memory, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete[](void* memory, std::align_val_t alignment) noexcept {
  give_back(memory, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory, size_t, std::align_val_t alignment) noexcept {
  give_back(memory, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete[](void* memory, size_t, std::align_val_t alignment) noexcept {
  give_back(memory, static_cast<size_t>(alignment), __builtin_return_address(0));
}
