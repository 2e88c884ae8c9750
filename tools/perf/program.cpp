// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/program.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <sstream>
#include <string>

#include "tools/perf/common/failure.hpp"
#include "tools/perf/connection/child.hpp"
#include "tools/perf/connection/connection.hpp"
#include "tools/perf/connection/listener.hpp"
#include "tools/perf/results.hpp"
#include "tools/perf/workload.hpp"
#include "tools/report/command_line.hpp"
#include "tools/report/out_of_memory.hpp"

namespace dapple::perf {
namespace {

constexpr int kFailed = 1;

struct Program {
  const char* name;
  const char* description;
  uint64_t size;
  uint64_t iterations;
  uint32_t depth;
  std::vector<Result> (*client)(Side&);
  void (*server)(Side&);
};

constexpr Program kPrograms[] = {
    {"dapple-test", "Tests uDAPL between two hosts: Send, RDMA Write, RDMA Read, and every byte.", 1 << 20, 10, 1,
     run_test_client, run_test_server},
    {"dapple-lat", "Measures the latency of uDAPL between two hosts.", 2, 1000, 1, run_latency_client,
     run_latency_server},
    {"dapple-bw", "Measures the bandwidth of uDAPL between two hosts.", 65536, 1000, 128, run_bandwidth_client,
     run_bandwidth_server},
};
const Program& program_of(Kind kind) {
  return kPrograms[static_cast<size_t>(kind)];
}

struct Options {
  explicit Options(Kind kind)
      : program(program_of(kind)),
        parameters{kind, Operation::kWrite, program.size, program.iterations, program.depth, kind == Kind::kTest, {}} {}

  Program program;
  std::string host;  // "" for a server
  std::string ia;
  uint16_t port = 18515;
  Parameters parameters;
  bool events = false;
  bool json = false;
  bool persistent = false;
  bool self = false;
  unsigned timeout_s = 30;
};

ConnectionOptions connection_options(const Options& options, const Parameters& parameters, bool client) {
  ConnectionOptions made = queues_for(parameters, client);
  made.events = options.events;
  made.timeout_s = options.timeout_s;
  return made;
}

Report run_client(const Options& options) {
  Session session(options.ia);
  Parameters parameters = options.parameters;
  check_size(session, parameters);
  Areas areas(session, parameters);
  parameters.memory = areas.region().for_peer();
  Connection connection(session, connection_options(options, parameters, true));
  Side side{session, areas, connection, parameters, {}};
  post_first_receives(side, true);
  side.peer = connection.connect(options.host, options.port, parameters);
  Report report{options.program.name,         session.name(), options.host, true, parameters,
                options.program.client(side), session.port()};
  connection.say_goodbye(areas.region().segment(areas.outbox(), kGoodbyeBytes));
  return report;
}

// Empty if the client cannot be served, in which case it gets the reason, or if it left before it was connected.
std::optional<Report> serve(const Options& options, Session& session, Listener& listener, const Client& client) {
  const Parameters& parameters = client.parameters;
  std::optional<Areas> areas;
  std::optional<Connection> connection;
  try {
    check_size(session, parameters);
    areas.emplace(session, parameters);
    connection.emplace(session, connection_options(options, parameters, false));
  } catch (const Failure& failure) {
    listener.refuse(client, failure.what());
    return {};
  }
  Side side{session, *areas, *connection, parameters, parameters.memory};
  post_first_receives(side, false);
  try {
    connection->accept(client.request, areas->region().for_peer());
  } catch (const Failure& failure) {
    fmt::print(stderr, "lost {}: {}\n", client.address, failure.what());
    return {};
  }
  options.program.server(side);
  connection->await_goodbye();
  return Report{options.program.name, session.name(), client.address, false, parameters, {}, session.port()};
}

void print(const Options& options, const Report& report) {
  fmt::print("{}", options.json ? as_json(report) : for_people(report));
  if (std::fflush(stdout) != 0) throw Failure("the results cannot be written");
}

// Serves one client, the first that can be served. Afterwards a persistent server waits for the next client; a failure
// with a client then does not end it.
void serve_clients(const Options& options, Session& session, Listener& listener) {
  for (bool served = false; !served || options.persistent;) {
    const Client client = listener.await_client(options.parameters.kind);
    try {
      const auto report = serve(options, session, listener, client);
      served = served || report;
      if (report && !options.self) print(options, *report);
    } catch (const Failure& failure) {
      if (!options.persistent) throw;
      fmt::print(stderr, "lost {}: {}\n", client.address, failure.what());
    }
  }
}

void run_server(const Options& options) {
  Session session(options.ia);
  Listener listener(session, options.port);
  if (!options.json) {
    fmt::print("waiting for a client: {} {} port {}\n", session.name(), session.address(), options.port);
    std::fflush(stdout);
  }
  serve_clients(options, session, listener);
}

// Both sides on this machine, over one port of a device.
void run_self(Options options) {
  Child server([&options](const auto& tell) {
    try {
      Session session(options.ia);
      constexpr uint16_t kAnyPort = 0;
      Listener listener(session, kAnyPort);
      tell(fmt::format("{} {} {}", session.name(), session.address(), listener.port()));
      serve_clients(options, session, listener);
      return true;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: {}\n", options.program.name, error.what());
      return false;
    }
  });
  std::istringstream(server.await_line()) >> options.ia >> options.host >> options.port;
  const Report report = run_client(options);
  server.await_end();
  print(options, report);
}

void set_size(Parameters& parameters, const std::string& word) {
  const auto size = dapple::size_of(word);
  if (!size || *size < 1 || *size > kMaxSize) {
    throw CLI::ValidationError("--size", word + " is not a size from 1 to 1G, such as 65536, 64k or 8M");
  }
  parameters.size = *size;
}

void add_options(CLI::App& app, Options& options) {
  Parameters& parameters = options.parameters;
  // Replaces the types and relations that CLI11 would show.
  constexpr const char* kNoText = " ";
  CLI::Option* host =
      app.add_option("HOST", options.host, "The server's address; without one, act as server")->option_text(kNoText);
  app.add_option("-d,--device", options.ia,
                 "The device to open: an IA, an RDMA device, a\nnetwork device; by default the first that opens")
      ->option_text("NAME");
  app.add_option("-p,--port", options.port, "The port (connection qualifier), 18515 by default")
      ->option_text("PORT")
      ->check(CLI::Range(1, 65535));
  [[maybe_unused]] CLI::Option* size =
      app.add_option_function<std::string>(
             "-s,--size", [&parameters](const std::string& word) { set_size(parameters, word); },
             fmt::format("{}, {} by default;\na number of bytes, or one with k, M or G",
                         options.parameters.kind == Kind::kTest ? "The largest size" : "The size",
                         options.program.size))
          ->option_text("BYTES");
  app.add_option("-n,--iters", parameters.iterations,
                 fmt::format("The number of rounds of each size; {} by default", options.program.iterations))
      ->option_text("COUNT")
      ->check(CLI::Range(uint64_t{1}, kMaxIterations));
  app.add_option("--timeout", options.timeout_s, "The time to wait for the peer; 30 by default")
      ->option_text("SECONDS")
      ->check(CLI::Range(1, 3600));
  app.add_flag("-e,--events", options.events, "Sleep until an event arrives, instead of polling");
  app.add_flag("--json", options.json, "Print one JSON document for each run");
  CLI::Option* persistent =
      app.add_flag("--persistent", options.persistent, "As a server, serve one client after another")
          ->option_text(kNoText)
          ->excludes(host);
  app.add_flag("--self", options.self, "Act as server and client, on this machine")
      ->option_text(kNoText)
      ->excludes(host)
      ->excludes(persistent);
  if (options.parameters.kind != Kind::kTest) {
    app.add_flag("-a,--all", parameters.all, "All sizes from 2 to 8388608 bytes")->option_text(kNoText)->excludes(size);
    app.add_option_function<std::string>(
           "-o,--op",
           [&parameters](const std::string& word) {
             for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
               if (word == word_of(operation)) parameters.operation = operation;
             }
           },
           "The operation: write, read or send;\nwrite by default")
        ->option_text("OPERATION")
        ->check(CLI::IsMember({"write", "read", "send"}));
  }
  if (options.parameters.kind == Kind::kBandwidth) {
    app.add_option("-t,--tx-depth", parameters.depth, "Outstanding requests, 128 by default")
        ->option_text("DEPTH")
        ->check(CLI::Range(uint32_t{1}, kMaxDepth));
  }
}

int run(Kind kind, int argc, char** argv) {
  Options options(kind);
  CLI::App app(options.program.description, options.program.name);
  add_options(app, options);
  app.footer("The client chooses the operation, the sizes and the counts;\na server ignores these options.");
  if (const auto code = dapple::parse_command_line(app, argc, argv)) return *code;
  constexpr uint64_t kLargestOfAll = 8 << 20;
  if (options.parameters.kind != Kind::kTest && options.parameters.all) options.parameters.size = kLargestOfAll;
  if (options.self) {
    run_self(options);
  } else if (options.host.empty()) {
    run_server(options);
  } else {
    print(options, run_client(options));
  }
  return 0;
}

}  // namespace

int run_program(Kind kind, int argc, char** argv) {
  end_when_out_of_memory(kFailed);
  try {
    return run(kind, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program_of(kind).name, error.what());
    return kFailed;
  }
}

}  // namespace dapple::perf
