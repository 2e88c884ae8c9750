// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-test, dapple-lat and dapple-bw: the two halves of a uDAPL connection, as a smoke test or to be measured. Which
// one it is says DAPPLE_PERF_KIND.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "tools/perf/connection.hpp"
#include "tools/perf/failure.hpp"
#include "tools/perf/listener.hpp"
#include "tools/perf/results.hpp"
#include "tools/perf/workload.hpp"

namespace {

using namespace dapple::perf;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

struct Program {
  const char* name;
  const char* description;
  uint64_t size;
  uint64_t iterations;
  uint32_t depth;
  std::vector<Result> (*client)(Half&);
  void (*server)(Half&);
};

constexpr Program kPrograms[] = {
    {"dapple-test", "Tests uDAPL between two hosts: Send, RDMA Write and RDMA Read, every byte verified.", 1 << 20, 10,
     1, run_test_client, run_test_server},
    {"dapple-lat", "Measures the latency of uDAPL between two hosts.", 2, 1000, 1, run_latency_client,
     run_latency_server},
    {"dapple-bw", "Measures the bandwidth of uDAPL between two hosts.", 65536, 1000, 128, run_bandwidth_client,
     run_bandwidth_server},
};
constexpr Kind kKind = Kind::DAPPLE_PERF_KIND;
constexpr Program kProgram = kPrograms[static_cast<size_t>(kKind)];

struct Options {
  std::string host;  // "" for a server
  std::string ia;
  uint16_t port = 18515;
  Parameters parameters;
  bool events = false;
  bool json = false;
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
  Areas areas(session, parameters.size);
  parameters.memory = areas.region().for_peer();
  Connection connection(session, connection_options(options, parameters, true));
  Half half{session, areas, connection, parameters, {}};
  post_first_receives(half, true);
  half.peer = connection.connect(options.host, options.port, parameters);
  Report report{kProgram.name, session.name(), options.host, true, parameters, kProgram.client(half)};
  connection.say_goodbye(areas.region().segment(areas.outbox(), kGoodbyeBytes));
  return report;
}

// Nothing where the client cannot be served, which it is told, or has gone before it was connected.
std::optional<Report> serve(const Options& options, Session& session, Listener& listener, const Client& client) {
  const Parameters& parameters = client.parameters;
  std::optional<Areas> areas;
  std::optional<Connection> connection;
  try {
    check_size(session, parameters);
    areas.emplace(session, parameters.size);
    connection.emplace(session, connection_options(options, parameters, false));
  } catch (const Failure& failure) {
    listener.refuse(client, failure.what());
    return {};
  }
  Half half{session, *areas, *connection, parameters, parameters.memory};
  post_first_receives(half, false);
  try {
    connection->accept(client.request, areas->region().for_peer());
  } catch (const Failure& failure) {
    fmt::print(stderr, "lost {}: {}\n", client.address, failure.what());
    return {};
  }
  kProgram.server(half);
  connection->await_goodbye();
  return Report{kProgram.name, session.name(), client.address, false, parameters, {}};
}

Report run_server(const Options& options) {
  Session session(options.ia);
  Listener listener(session, options.port);
  if (!options.json) {
    fmt::print("waiting for a client: {} {} port {}\n", session.name(), session.address(), options.port);
    std::fflush(stdout);
  }
  for (;;) {
    const Client client = listener.await_client(kKind);
    if (auto report = serve(options, session, listener, client)) return *report;
  }
}

void add_options(CLI::App& app, Options& options) {
  Parameters& parameters = options.parameters;
  parameters = {kKind, Operation::kWrite, kProgram.size, kProgram.iterations, kProgram.depth, kKind == Kind::kTest, {}};
  // As an unset variable of a script's would be.
  const auto not_empty = [](const std::string& word) { return std::string(word.empty() ? "an empty word" : ""); };
  app.add_option("HOST", options.host, "The server's address. Without one this is the server")->check(not_empty);
  app.add_option("-d,--device", options.ia, "The IA to open; the first that opens by default")->check(not_empty);
  app.add_option("-p,--port", options.port, "The port (connection qualifier)")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  app.add_option("-s,--size", parameters.size,
                 kKind == Kind::kTest ? "The largest size, in bytes" : "The size, in bytes")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, kMaxSize));
  app.add_option("-n,--iters", parameters.iterations, "How often, for each size")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, kMaxIterations));
  app.add_option("--timeout", options.timeout_s, "How long to wait for the peer, in seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  app.add_flag("-e,--events", options.events, "Sleep until something comes, instead of polling");
  app.add_flag("--json", options.json, "Print one JSON document");
  app.set_version_flag("--version", DAPPLE_VERSION);
  if (kKind == Kind::kTest) return;
  app.add_flag("-a,--all", parameters.all, "All sizes from 2 to 8388608 bytes")->excludes("--size");
  app.add_option_function<std::string>(
         "-o,--op",
         [&parameters](const std::string& word) {
           for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
             if (word == word_of(operation)) parameters.operation = operation;
           }
         },
         "What is measured: write, read or send")
      ->default_str("write")
      ->check(CLI::IsMember({"write", "read", "send"}));
  if (kKind != Kind::kBandwidth) return;
  app.add_option("-t,--tx-depth", parameters.depth, "Requests under way at a time")
      ->capture_default_str()
      ->check(CLI::Range(uint32_t{1}, kMaxDepth));
}

int serve_or_measure(Options& options) {
  constexpr uint64_t kLargestOfAll = 8 << 20;
  if (kKind != Kind::kTest && options.parameters.all) options.parameters.size = kLargestOfAll;
  const Report report = options.host.empty() ? run_server(options) : run_client(options);
  fmt::print("{}", options.json ? as_json(report) : for_people(report));
  if (std::fflush(stdout) == 0) return 0;
  throw Failure("the results cannot be written");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(kProgram.description, kProgram.name);
  add_options(app, options);
  app.footer("What is measured, and how often, the client says; the server's own options count for nothing there.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return serve_or_measure(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kProgram.name, error.what());
    return kFailed;
  }
}
