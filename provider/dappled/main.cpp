// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled: owns UDP port 4791 of a network namespace and the QP numbers of its programs' software RoCEv2 devices.
// Programs start it when they need it, and it ends with the last of them.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "provider/dappled/daemonize.hpp"
#include "provider/dappled/server.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

constexpr Milliseconds kLinger = 1000;
constexpr int kBacklog = 512;
constexpr int kNameTries = 200;

// Readable when a signal asks dappled to end.
soft::OwnedFd signals_to_stop(bool foreground) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  if (foreground) sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return soft::OwnedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

constexpr char kHelp[] =
    R"help(usage: dappled [--foreground]

Serves the software RoCEv2 devices of this network namespace, as dapple-soft(7)
describes. The programs that use them start it.

  --foreground  stay in the foreground, and report errors on standard error
  -h, --help    print this
  --version     print the version
)help";

struct Options {
  int ready = -1;
  bool foreground = false;
};

// What an option prints, and null for an option that prints nothing.
const char* text_for(const char* option) {
  if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) return kHelp;
  return strcmp(option, "--version") == 0 ? DAPPLE_VERSION "\n" : nullptr;
}

// --ready-fd=N is for the program that starts dappled: a descriptor for the answer.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i++) {
    static constexpr char kReadyFd[] = "--ready-fd=";
    if (strcmp(argv[i], "--foreground") == 0) {
      options.foreground = true;
    } else if (strncmp(argv[i], kReadyFd, sizeof kReadyFd - 1) == 0) {
      char* end;
      const long number = strtol(argv[i] + sizeof kReadyFd - 1, &end, 10);
      if (*end != '\0' || number < 3 || number > 1 << 20) return false;
      options.ready = static_cast<int>(number);
    } else {
      return false;
    }
  }
  return true;
}

// The value of DAPPLED_LINGER, in seconds; kLinger if it is unset or malformed.
Milliseconds linger_time() {
  const char* text = secure_getenv("DAPPLED_LINGER");
  if (text == nullptr) return kLinger;
  char* end;
  const double seconds = strtod(text, &end);
  const bool good = end != text && *end == '\0' && seconds >= 0 && seconds <= 86400;
  return good ? static_cast<Milliseconds>(seconds * 1000) : kLinger;
}

void tell(const Options& options, const char* line) {
  if (options.ready >= 0) {
    const ssize_t written = write(options.ready, line, strlen(line));
    (void)written;
  } else if (options.foreground) {
    fprintf(stderr, "dappled: %s\n", line);
  }
}

bool somebody_listens(const sockaddr_un& address, socklen_t size) {
  const soft::OwnedFd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 || errno == EAGAIN;
}

// The name is the lock: at most one dappled of a network namespace has it.
soft::OwnedFd listen_on_name(bool& another) {
  sockaddr_un address;
  const socklen_t size = soft::abstract_address(soft::kDaemonName, address);
  soft::OwnedFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  another = false;
  for (int i = 0; listener && i < kNameTries; i++) {
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) {
      if (listen(listener.get(), kBacklog) == 0) return listener;
      break;
    }
    if (errno != EADDRINUSE) break;
    another = somebody_listens(address, size);
    if (another) break;
    // The other dappled is about to end, or does not listen yet.
    const timespec pause = {0, 5000000};
    nanosleep(&pause, nullptr);
  }
  listener.reset();
  return listener;
}

// dappled inherits the limits of the program that starts it, but it serves all programs of the network namespace.
// Descriptors that members hold in queues count against dappled's limit too.
void raise_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE}) {
    rlimit limit;
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const char* text = argc == 2 ? text_for(argv[1]) : nullptr; text != nullptr) {
    fputs(text, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  if (!parse(argc, argv, options)) {
    fprintf(stderr, "dappled: wrong options; see dappled --help\n");
    return 2;
  }
  if (!options.foreground) options.ready = daemonize(options.ready);
  raise_limits();
  // The seed belongs to the program that has started dappled, and not to the other programs.
  unsetenv("DAPPLE_SEED");
  // A huge page would be more memory than all that this process needs.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  bool another = false;
  soft::OwnedFd listener = listen_on_name(another);
  if (another) {
    tell(options, options.ready >= 0 ? "R" : "another dappled serves this network namespace");
    return options.ready >= 0 ? 0 : 1;
  }
  if (!listener) {
    tell(options, strerror(errno));
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  // A limit on the size of files stops the writing, not dappled.
  signal(SIGXFSZ, SIG_IGN);

  static Server server(std::move(listener), linger_time());
  if (const int error = server.prepare(signals_to_stop(options.foreground)); error != 0) {
    tell(options, strerror(error));
    return 1;
  }
  if (options.ready >= 0) {
    tell(options, "R");
    close(options.ready);
  }
  server.run();
  return 0;
}
