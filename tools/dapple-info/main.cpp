// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info: what this machine's RDMA devices are, as far as memory is concerned, and why that is believed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "tools/dapple-info/dat.hpp"
#include "tools/dapple-info/devices.hpp"
#include "tools/dapple-info/libibverbs.hpp"
#include "tools/dapple-info/memlock.hpp"

namespace {

using namespace dapple::info;
using dapple::Json;

constexpr int kNothingFound = 1;
constexpr int kBadUsage = 2;

struct Options {
  bool json = false;
  bool dat = false;
  std::string registry = "libdat2.so.2";
  std::string registry12 = "libdat.so.1";
};

int report(const Options& options) {
  const std::vector<Device> devices = read_devices();
  const dapple::verbs::Memlock memlock = dapple::verbs::read_memlock();
  const Libibverbs libibverbs = read_libibverbs();
  DatReport dat;
  if (options.dat) dat = read_dat(options.registry, options.registry12);
  if (options.json) {
    Json json;
    json.begin_object();
    devices_as_json(devices, json);
    libibverbs_as_json(libibverbs, json);
    memlock_as_json(memlock, json);
    if (options.dat) dat_as_json(dat, json);
    json.end_object();
    fmt::print("{}", json.document());
  } else {
    fmt::print("{}", devices.empty() ? how_to_get_a_device(some_netdev()) : devices_for_people(devices));
    fmt::print("{}\n{}", libibverbs_for_people(libibverbs), memlock_for_people(memlock));
    const std::string hint = what_to_run(devices);
    if (!hint.empty()) fmt::print("\n{}", hint);
    if (options.dat) fmt::print("\n{}", dat_for_people(dat));
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
      "Shows this machine's RDMA devices: whether they and the CPU see the same memory, and why that is "
      "believed.",
      "dapple-info");
  app.add_flag("--json", options.json, "Print one JSON document");
  app.add_flag("--dat", options.dat, "Also every provider of uDAPL: where it comes from, and whether it opens");
  app.add_option("--registry", options.registry, "The registry of DAT 2.0 that --dat asks")->capture_default_str();
  app.add_option("--registry-1.2", options.registry12, "The registry of DAT 1.2 that --dat asks")
      ->capture_default_str();
  app.set_version_flag("--version", DAPPLE_VERSION);
  app.footer("It ends with 0, or with 1 where there is no RDMA device.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return report(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dapple-info: %s\n", error.what());
    return kBadUsage;
  }
}
