// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// sim: runs worlds by their seeds. One seed is one exact run.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/sim/world.hpp"

namespace {

using namespace dapple::sim;

constexpr char kUsage[] =
    "usage: sim [--world WORLD] --seed N [--pcap FILE]\n"
    "       sim [--world WORLD] --seeds FIRST..LAST\n"
    "\n"
    "  --world WORLD     mixed: reliable and unreliable connections and datagrams; the default\n"
    "                    xrc: mostly extended reliable connections\n"
    "  --seed N          one run, with its trace\n"
    "  --pcap FILE       and every packet that is sent, for wireshark\n"
    "  --seeds A..B      all of these, until some have failed\n";

constexpr int kMaxFailures = 5;

struct Outcome {
  std::string reason;
  uint64_t hash = 0;
};

Outcome run(uint64_t seed, WorldKind kind, Arena& arena, bool verbose, dapple::roce::test::PcapFile* pcap) {
  Referee referee(verbose);
  World world(seed, kind, arena, referee);
  world.set_pcap(pcap);
  world.run();
  return {referee.reason(), referee.trace_hash()};
}

int run_one(uint64_t seed, WorldKind kind, const char* pcap_path) {
  Arena arena;
  std::unique_ptr<dapple::roce::test::PcapFile> pcap;
  if (pcap_path != nullptr) pcap = std::make_unique<dapple::roce::test::PcapFile>(pcap_path);
  const Outcome outcome = run(seed, kind, arena, true, pcap.get());
  if (pcap && !pcap->close()) std::fprintf(stderr, "sim: cannot write %s\n", pcap_path);
  std::printf("seed %" PRIu64 ": trace %016" PRIx64 ", %s\n", seed, outcome.hash,
              outcome.reason.empty() ? "all rules kept" : outcome.reason.c_str());
  return outcome.reason.empty() ? 0 : 1;
}

int run_many(uint64_t first, uint64_t last, WorldKind kind) {
  Arena arena;
  uint64_t all = 0;
  int failures = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    Outcome outcome = run(seed, kind, arena, false, nullptr);
    // Some seeds run twice: the same seed must give the same run.
    if (outcome.reason.empty() && seed % 32 == 0 && run(seed, kind, arena, false, nullptr).hash != outcome.hash)
      outcome.reason = "the second run differs from the first";
    all = mixed(all + outcome.hash);
    if (outcome.reason.empty()) continue;
    ++failures;
    std::printf("seed %" PRIu64 " FAILED: %s\nreplay: scripts/sim%s --seed %" PRIu64 "\n", seed, outcome.reason.c_str(),
                kind == WorldKind::kExtended ? " --world xrc" : "", seed);
    std::fflush(stdout);
    if (failures == kMaxFailures) break;
  }
  if (failures > 0) return 1;
  std::printf("seeds %" PRIu64 "..%" PRIu64 ": all rules kept, traces %016" PRIx64 "\n", first, last, all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* pcap_path = nullptr;
  const char* seed = nullptr;
  const char* seeds = nullptr;
  const char* world = "mixed";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--pcap") == 0) pcap_path = argv[i + 1];
    if (std::strcmp(argv[i], "--world") == 0) world = argv[i + 1];
    if (std::strcmp(argv[i], "--seed") == 0) seed = argv[i + 1];
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = argv[i + 1];
  }
  const bool is_extended = std::strcmp(world, "xrc") == 0;
  const WorldKind kind = is_extended ? WorldKind::kExtended : WorldKind::kMixed;
  const char* dots = seeds == nullptr ? nullptr : std::strstr(seeds, "..");
  if (argc % 2 == 0 || (seed == nullptr) == (dots == nullptr) || (!is_extended && std::strcmp(world, "mixed") != 0)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (seed != nullptr) return run_one(std::strtoull(seed, nullptr, 10), kind, pcap_path);
  return run_many(std::strtoull(seeds, nullptr, 10), std::strtoull(dots + 2, nullptr, 10), kind);
}
