// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info: this machine's RDMA devices and their memory coherence, with reasons.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "tools/dapple-info/dat.hpp"
#include "tools/dapple-info/devices.hpp"
#include "tools/dapple-info/libibverbs.hpp"
#include "tools/dapple-info/memlock.hpp"
#include "tools/dapple-info/ping/ping.hpp"
#include "tools/dapple-info/rpma.hpp"
#include "tools/dapple-info/settings.hpp"
#include "tools/dapple-info/soft.hpp"
#include "tools/dapple-info/tree.hpp"
#include "tools/picture/picture.hpp"
#include "tools/report/command_line.hpp"
#include "tools/report/out_of_memory.hpp"

namespace {

using namespace dapple::info;
using dapple::Json;

constexpr int kNothingFound = 1;
using dapple::kBadUsage;

struct Options {
  bool json = false;
  bool dat = false;
  bool all = false;
  bool verbose = false;
  std::string registry = "libdat2.so.2";
  std::string registry12 = "libdat.so.1";
  std::string rpma_address;
  std::string librpma = "librpma.so.0";
  std::string peer;
  std::string tree;
  std::string picture;
  std::string findings;
  unsigned int count = 3;
};

int ping_peer(const Options& options) {
  // Prints each step as it happens, also into a pipe.
  const PingFacts facts = ping(options.peer, options.count, [&options](const std::string& line) {
    if (!options.json) fmt::print("{}\n", line);
    std::fflush(stdout);
  });
  if (options.json) {
    fmt::print("{}", dapple::document_of(ping_as_json(facts)));
  } else {
    fmt::print("{}", ping_for_people(facts));
  }
  if (std::fflush(stdout) != 0) {
    std::perror("dapple-info: cannot write");
    return kBadUsage;
  }
  return static_cast<int>(judge(facts));
}

int report(const Options& options) {
  const std::vector<Device> devices = read_devices();
  const dapple::verbs::Memlock memlock = dapple::verbs::read_memlock();
  const Libibverbs libibverbs = read_libibverbs();
  const dapple::provider::Settings settings = dapple::provider::settings();
  const SoftReport soft = read_soft();
  DatReport dat;
  if (options.dat || options.all) dat = read_dat(options.registry, options.registry12, options.all);
  RpmaReport rpma;
  if (!options.rpma_address.empty()) rpma = read_rpma(options.librpma, options.rpma_address);
  if (options.json) {
    dapple::Json json = {{"devices", devices_as_json(devices)},
                         {"libibverbs", libibverbs_as_json(libibverbs)},
                         {"memlock", memlock_as_json(memlock)},
                         {"settings", settings_as_json(settings)},
                         {"software_device", soft_as_json(soft)}};
    if (options.dat || options.all) json["dat"] = dat_as_json(dat);
    if (!options.rpma_address.empty()) json["rpma"] = rpma_as_json(rpma);
    fmt::print("{}", dapple::document_of(json));
  } else {
    fmt::print("{}", devices.empty() ? how_to_get_a_device(some_netdev(), has_softroce(program_folders()))
                                     : devices_for_people(devices));
    fmt::print("{}\n{}", libibverbs_for_people(libibverbs), memlock_for_people(memlock));
    fmt::print("{}", settings_for_people(settings));
    const std::string hint = what_to_run(devices);
    if (!hint.empty()) fmt::print("\n{}", hint);
    fmt::print("\n{}", soft_for_people(soft, options.verbose ? Counters::kAll : Counters::kNonzero));
    if (options.dat || options.all) fmt::print("\n{}", dat_for_people(dat));
    if (!options.rpma_address.empty()) fmt::print("\n{}", rpma_for_people(rpma));
  }
  if (std::fflush(stdout) != 0) {
    std::perror("dapple-info: cannot write");
    return kBadUsage;
  }
  return devices.empty() ? kNothingFound : 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Shows this machine's RDMA devices: names, addresses, and whether\nthey are coherent with the CPU, and why.",
      "dapple-info");
  app.add_flag("--json", options.json, "Print one JSON document");
  app.add_flag("-v,--verbose", options.verbose, "Also show the counters that are 0");
  app.add_flag("--dat", options.dat, "Also show the providers of uDAPL, and try to\nopen them");
  app.add_flag("--all", options.all, "The same, and lines for devices that this\nmachine lacks");
  app.add_option("--registry", options.registry, "The registry of DAT 2.0 that --dat asks;\nlibdat2.so.2 by default")
      ->option_text("LIBRARY");
  app.add_option("--registry-1.2", options.registry12,
                 "The registry of DAT 1.2 that --dat asks;\nlibdat.so.1 by default")
      ->option_text("LIBRARY");
  app.add_option("--rpma", options.rpma_address,
                 "Show the features of librpma on the device\nof this address of the machine, with reasons")
      ->option_text("ADDRESS");
  app.add_option("--librpma", options.librpma, "The library that --rpma asks;\nlibrpma.so.0 by default")
      ->option_text("LIBRARY");
  auto* peer =
      app.add_option("--ping", options.peer, "Test RoCE to this host (name or address),\nand explain a failure")
          ->option_text("PEER");
  app.add_option("--count", options.count, "The number of questions of --ping; 3 by default")
      ->option_text("N")
      ->check(CLI::Range(1, 1000).description(""))
      ->needs(peer);
  app.add_option(
         "--tree", options.tree,
         "Keep a folder with the contents of\n/sys/class/infiniband up to date, for containers\nand static programs")
      ->option_text("FOLDER")
      ->excludes(peer);
  auto* picture =
      app.add_option("--picture", options.picture,
                     "Make pictures of what dapple-run --trace NAME\nwrote: NAME.perfetto.json and NAME.html")
          ->option_text("NAME")
          ->excludes(peer);
  app.add_option("--findings", options.findings, "Reports of dapple-run --json for the pictures")
      ->option_text("FILE")
      ->needs(picture);
  app.footer(
      "Exit status: 0, 1 if there is no RDMA device, or --tree cannot write the\nfolder, 2 for wrong options.\nWith "
      "--ping: 0 if RoCE works, 3 if the name "
      "cannot be resolved, 4 if the\nhost cannot be reached, 5 if it has no RoCE, 6 if no answer came,\n7 if packets "
      "are changed on the way, 8 if large packets do not pass, 9 if\nthis side cannot test.");
  if (const auto code = dapple::parse_command_line(app, argc, argv)) return *code;
  if (!options.tree.empty()) return keep_tree(options.tree);
  if (!options.picture.empty()) {
    dapple::picture::draw(options.picture, options.findings);
    return 0;
  }
  return options.peer.empty() ? report(options) : ping_peer(options);
}

}  // namespace

int main(int argc, char** argv) {
  dapple::end_when_out_of_memory(dapple::kBadUsage);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dapple-info: %s\n", error.what());
    return kBadUsage;
  }
}
