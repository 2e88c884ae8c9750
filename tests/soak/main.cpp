// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// soak: hours of mixed traffic of verbs, uDAPL and librpma on the software device, with kills, loss, churn and too
// little memory. Runs under dapple-run.
#include <CLI/CLI.hpp>
#include <exception>

#include "tests/soak/news.hpp"
#include "tests/soak/supervisor.hpp"
#include "tools/report/command_line.hpp"

int main(int argc, char** argv) {
  using namespace dapple;
  soak::Settings settings;
  uint64_t minutes = 0;
  CLI::App app("Endurance of the software device. Every byte is checked; the exit code is 0 if nothing failed.",
               "soak");
  app.add_option("--minutes", minutes, "the length of the run")->check(CLI::Range(1, 10000));
  app.add_option("--seconds", settings.seconds, "the same in seconds (60)")->check(CLI::Range(20, 600000));
  app.add_option("--seed", settings.seed, "decides the traffic and the kills (1)");
  app.add_option("--pairs", settings.pairs, "pairs of a server and a client (12)")
      ->check(CLI::Range(1U, soak::kMaxPairs));
  app.add_option("--only", settings.only, "one interface")->check(CLI::IsMember({"verbs", "udapl", "rpma"}));
  app.add_option("--logs", settings.logs, "keep the workers' logs in this folder");
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  if (minutes != 0) settings.seconds = minutes * 60;
  try {
    return soak::supervise(settings) ? 0 : 1;
  } catch (const std::exception& error) {
    fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
