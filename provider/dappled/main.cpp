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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "provider/common/settings.hpp"
#include "provider/dappled/daemonize.hpp"
#include "provider/dappled/limits.hpp"
#include "provider/dappled/server.hpp"
#include "provider/member/name_holder.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

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
  bool replace = false;
};

// What an option prints, and null for an option that prints nothing.
const char* text_for(const char* option) {
  if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) return kHelp;
  return strcmp(option, "--version") == 0 ? DAPPLE_VERSION "\n" : nullptr;
}

// --ready-fd=N is for the program that starts dappled: a descriptor for the answer. With --replace, dappled takes the
// place of one whose limits are too low.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i++) {
    static constexpr char kReadyFd[] = "--ready-fd=";
    if (strcmp(argv[i], "--foreground") == 0) {
      options.foreground = true;
    } else if (strcmp(argv[i], "--replace") == 0) {
      options.replace = true;
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

// The value of DAPPLED_LINGER, in seconds; kUsualLinger if it is unset or malformed.
Milliseconds linger_time() {
  const char* text = provider::settings().dappled_linger;
  if (text == nullptr) return kUsualLinger;
  char* end;
  const double seconds = strtod(text, &end);
  const bool good = end != text && *end == '\0' && seconds >= 0 && seconds <= 86400;
  return good ? static_cast<Milliseconds>(seconds * 1000) : kUsualLinger;
}

void tell(const Options& options, const char* line) {
  if (options.ready >= 0) {
    const ssize_t written = write(options.ready, line, strlen(line));
    (void)written;
  } else if (options.foreground) {
    fprintf(stderr, "dappled: %s\n", line);
  }
}

// The name is the lock: at most one dappled of a network namespace has it.
class Name {
 public:
  enum class Outcome { kTaken, kAnother, kFailed };

  // kAnother: another dappled listens. kFailed: `problem` has the reason.
  Outcome take(soft::OwnedFd& listener, soft::Problem& problem) const {
    listener.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener) return failed(problem);
    for (int i = 0; i < kTries; i++) {
      if (bind(listener.get(), address(), size_) == 0) {
        return listen(listener.get(), kBacklog) == 0 ? Outcome::kTaken : failed(problem);
      }
      if (errno != EADDRINUSE) return failed(problem);
      if (somebody_listens()) return Outcome::kAnother;
      // The other dappled is about to end, or does not listen yet.
      const timespec pause = {0, 5000000};
      nanosleep(&pause, nullptr);
    }
    char holder[120];
    soft::name_holder(soft::find_name_holder(soft::kDaemonName, SOCK_SEQPACKET), holder, sizeof holder);
    problem.set(EADDRINUSE,
                "%s has the name of dappled and does not listen; end it, or run in another network namespace", holder);
    return Outcome::kFailed;
  }

  // Asks the present dappled for its name. It continues until the connection ends. Empty: it keeps the name.
  soft::OwnedFd ask_for_it() const {
    soft::OwnedFd connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerTime, sizeof kAnswerTime);
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
    if (connect(connection.get(), address(), size_) != 0) return {};
    soft::YieldRequest request;
    request.limits = soft::hard_limits();
    const auto kind = static_cast<uint16_t>(soft::MessageKind::kYield);
    if (soft::send_message(connection.get(), soft::seal(request, kind), {}) != 0) return {};
    std::byte room[sizeof(soft::ErrorReply)];
    const ssize_t size = soft::receive_message(connection.get(), room);
    soft::HeaderOnly reply;
    if (size <= 0 ||
        !soft::well_formed(std::span(room).first(static_cast<size_t>(size)), kind | soft::kReplyBit, reply))
      return {};
    return connection;
  }

 private:
  static constexpr int kBacklog = 512;
  static constexpr int kTries = 200;
  static constexpr timeval kAnswerTime = {5, 0};

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  bool somebody_listens() const {
    const soft::OwnedFd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return connect(probe.get(), address(), size_) == 0 || errno == EAGAIN;
  }

  static Outcome failed(soft::Problem& problem) {
    problem.set(errno, "dappled has no socket to listen on: %s", strerror(errno));
    return Outcome::kFailed;
  }

  sockaddr_un address_ = {};
  const socklen_t size_ = soft::abstract_address(soft::kDaemonName, address_);
};

int fail(const Options& options, soft::Problem& problem, const soft::SocketProcess& starter) {
  if (is_shortage(problem.error)) describe_shortage(problem.error, starter, problem);
  tell(options, problem.line);
  return 1;
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
  const soft::SocketProcess starter = find_starter();
  if (!options.foreground) options.ready = daemonize(options.ready);
  raise_limits();
  // The files of the devices have the modes of sysfs, whatever the starter's umask is.
  umask(022);
  // The seed belongs to the program that has started dappled, and not to the other programs.
  unsetenv("DAPPLE_SEED");
  // A huge page would be more memory than all that this process needs.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  const Name name{};
  soft::OwnedFd predecessor, listener;
  soft::Problem problem;
  if (options.replace) predecessor = name.ask_for_it();
  switch (name.take(listener, problem)) {
    case Name::Outcome::kTaken:
      break;
    case Name::Outcome::kAnother:
      tell(options, options.ready >= 0 ? "R" : "another dappled serves this network namespace");
      return options.ready >= 0 ? 0 : 1;
    case Name::Outcome::kFailed:
      return fail(options, problem, starter);
  }
  predecessor.reset();
  signal(SIGPIPE, SIG_IGN);
  // A limit on the size of files stops the writing, not dappled.
  signal(SIGXFSZ, SIG_IGN);

  static Server server(std::move(listener), starter, linger_time());
  if (const int error = server.prepare(signals_to_stop(options.foreground)); error != 0) {
    problem.set(error, "dappled cannot begin: %s", strerror(error));
    return fail(options, problem, starter);
  }
  if (options.ready >= 0) {
    tell(options, "R");
    close(options.ready);
  }
  // Destroying the server would end the programs' ids of rdma_cm, which the next dappled takes over.
  if (!server.run()) _exit(0);
  return 0;
}
