// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of dapple-test, dapple-lat and dapple-bw that need no device.
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <thread>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tools/perf/common/failure.hpp"
#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/child.hpp"
#include "tools/perf/connection/host.hpp"
#include "tools/perf/pattern.hpp"
#include "tools/perf/progress.hpp"
#include "tools/perf/results.hpp"
#include "tools/perf/statistics.hpp"
#include "tools/perf/workload.hpp"
#include "tools/report/command_line.hpp"

using namespace dapple::perf;

namespace {

bool near(double a, double b) {
  return std::fabs(a - b) < 1e-6;
}

void latency__percentiles_of_a_thousand() {
  std::vector<double> samples;
  for (int i = 1000; i > 0; --i) samples.push_back(i);
  const LatencyStatistics s = latency_of(samples);
  CHECK(near(s.min, 1) && near(s.max, 1000) && near(s.typical, 500) && near(s.average, 500.5));
  CHECK(near(s.percentile_99, 990) && near(s.percentile_99_9, 999));
  CHECK(std::fabs(s.deviation - 288.675) < 0.001);
}

void latency__one_sample_is_all_of_them() {
  std::vector<double> samples{7};
  const LatencyStatistics s = latency_of(samples);
  CHECK(near(s.min, 7) && near(s.max, 7) && near(s.typical, 7) && near(s.percentile_99_9, 7) && near(s.deviation, 0));
}

void bandwidth__peak_is_of_the_fastest_window() {
  constexpr uint64_t kMib = 1 << 20;
  // Four in the first second, then four in a tenth of one.
  const std::vector<double> times{0.25, 0.5, 0.75, 1, 1.025, 1.05, 1.075, 1.1};
  const BandwidthStatistics s = bandwidth_of(times, kMib, 4);
  CHECK(near(s.average_gbit_s, 8 / 1.1 * 8 * kMib / 1e9));
  CHECK(near(s.average_mib_s, 8 / 1.1) && near(s.peak_mib_s, 40) && near(s.rate_mpps, 8 / 1.1 / 1e6));
  // A run that is shorter than the window has no peak of its own.
  const BandwidthStatistics whole = bandwidth_of(times, kMib, 16);
  CHECK(near(whole.peak_mib_s, whole.average_mib_s));
  CHECK(std::isfinite(bandwidth_of({0}, kMib, 1).average_mib_s));
}

Parameters some() {
  return {Kind::kBandwidth, Operation::kSend, 65536, 1000, 128, true, {0x123456789abcdef0, 0x12345678}};
}

void parameters__survive_the_wire() {
  const auto wire = encode(some());
  std::string problem;
  const auto p = decode_request(wire.data(), wire.size(), Kind::kBandwidth, problem);
  CHECK(p && problem.empty());
  CHECK(p && p->operation == Operation::kSend && p->size == 65536 && p->iterations == 1000 && p->depth == 128 &&
        p->all);
  CHECK(p && p->memory.address == 0x123456789abcdef0 && p->memory.rmr_context == 0x12345678);
  const auto reply = encode(RemoteMemory{5, 7});
  const auto memory = decode_reply(reply.data(), reply.size());
  CHECK(memory && memory->address == 5 && memory->rmr_context == 7);
}

// A stranger's bytes: none are accepted, and nothing beyond them is read.
void parameters__of_strangers_are_refused() {
  std::string problem;
  auto wire = encode(some());
  for (size_t size = 0; size < wire.size(); ++size) {
    CHECK(!decode_request(wire.data(), size, Kind::kBandwidth, problem));
  }
  CHECK(!decode_request(nullptr, 0, Kind::kBandwidth, problem));
  CHECK(!decode_request(wire.data(), wire.size(), Kind::kTest, problem));
  wire[5] = 99;
  CHECK(!decode_request(wire.data(), wire.size(), Kind::kBandwidth, problem) && problem == "is of another version");
  const auto refused = [&problem](Parameters p) {
    const auto sent = encode(p);
    return !decode_request(sent.data(), sent.size(), Kind::kBandwidth, problem) &&
           problem.find("bounds") != problem.npos;
  };
  Parameters p = some();
  p.size = kMaxSize + 1;
  CHECK(refused(p));
  p = some();
  p.size = 0;
  CHECK(refused(p));
  p = some();
  p.iterations = 0;
  CHECK(refused(p));
  p = some();
  p.depth = kMaxDepth + 1;
  CHECK(refused(p));
  p = some();
  p.operation = static_cast<Operation>(3);
  CHECK(refused(p));
  const auto reply = encode(RemoteMemory{5, 7});
  CHECK(!decode_reply(reply.data(), reply.size() - 1) && !decode_reply(nullptr, 0));
}

void refusal__says_why() {
  const std::string why = "the client is of another version";
  auto wire = encode_refusal(why);
  CHECK_EQUAL(decode_refusal(wire.data(), wire.size()), why);
  // Private data may be padded, and a reason of the maximum length has no terminating zero.
  const std::string padded = std::string(wire.begin(), wire.end()) + std::string(4, '\0');
  CHECK_EQUAL(decode_refusal(padded.data(), padded.size()), why);
  const auto longest = encode_refusal(std::string(1000, 'x'));
  CHECK_EQUAL(decode_refusal(longest.data(), longest.size()), std::string(kRefusalBytes - 8, 'x'));
  const std::string more = std::string(longest.begin(), longest.end()) + "y";
  CHECK_EQUAL(decode_refusal(more.data(), more.size()), std::string(kRefusalBytes - 8, 'x'));
}

void refusal__of_strangers_gives_no_reason() {
  auto wire = encode_refusal("it is late");
  for (size_t size = 0; size < 9; ++size) CHECK(decode_refusal(wire.data(), size).empty());
  CHECK(decode_refusal(nullptr, 0).empty());
  wire[9] = '\033';
  CHECK(decode_refusal(wire.data(), wire.size()).empty());
  wire = encode_refusal("it is late");
  wire[7] = 99;
  CHECK(decode_refusal(wire.data(), wire.size()).empty());
}

void size__is_limited_by_what_is_done() {
  DAT_IA_ATTR attr{};
  attr.max_message_size = 100;
  attr.max_rdma_size = 200;
  Parameters p = some();
  CHECK_EQUAL(largest_size(attr, p), 100U);
  p.operation = Operation::kWrite;
  CHECK_EQUAL(largest_size(attr, p), 200U);
  p.operation = Operation::kRead;
  CHECK_EQUAL(largest_size(attr, p), 200U);
  p.kind = Kind::kTest;
  CHECK_EQUAL(largest_size(attr, p), 100U);
}

void parameters__sizes() {
  Parameters p = some();
  p.size = 9;
  CHECK((p.sizes() == std::vector<uint64_t>{2, 4, 8, 9}));
  p.kind = Kind::kTest;
  p.size = 4;
  CHECK((p.sizes() == std::vector<uint64_t>{1, 2, 4}));
  p.all = false;
  CHECK((p.sizes() == std::vector<uint64_t>{4}));
}

void pattern__a_wrong_byte_is_named() {
  std::vector<unsigned char> memory(70000);
  fill(memory.data(), memory.size(), 5);
  verify(memory.data(), memory.size(), 5, "it");
  memory[300] ^= 1;
  std::string said;
  try {
    verify(memory.data(), memory.size(), 5, "our RDMA Read");
  } catch (const Failure& failure) {
    said = failure.what();
  }
  CHECK(said.starts_with("our RDMA Read of 70000 bytes: byte 300 is 0x"));
  // Neither the next seed's bytes nor a page at the wrong place may pass.
  for (const size_t shift : {size_t{0}, size_t{4096}}) {
    bool wrong = false;
    fill(memory.data(), memory.size(), shift == 0 ? 6 : 5);
    try {
      verify(memory.data() + shift, 4096, 5, "it");
    } catch (const Failure&) {
      wrong = true;
    }
    CHECK(wrong);
  }
}

void results__as_a_table_and_as_json() {
  Report report{"dapple-lat", "ia0", "10.0.0.1", true, some(), {{64, 10, {}, {}}}, {}};
  report.parameters.kind = Kind::kLatency;
  report.results[0].latency = LatencyStatistics{1, 2, 1.5, 1.25, 0.5, 2, 2};
  CHECK(for_people(report).find("64      10           1.000        2.000        1.500") != std::string::npos);
  CHECK(for_people(report).starts_with("Send latency: ia0 with 10.0.0.1\n"));
  CHECK(as_json(report).find("\"t_typical_us\": 1.5") != std::string::npos);
  report.local = {"rxe0", "1", "10.0.0.2", "::ffff:10.0.0.2", "1024"};
  CHECK(for_people(report).starts_with(
      "Send latency: ia0 with 10.0.0.1\nrxe0 port 1, 10.0.0.2, GID ::ffff:10.0.0.2, MTU 1024\n#bytes"));
  CHECK(as_json(report).find("\"gid\": \"::ffff:10.0.0.2\"") != std::string::npos);
  report.local = {"", "", "", "", "1024"};
  CHECK(for_people(report).starts_with("Send latency: ia0 with 10.0.0.1\nMTU 1024\n#bytes"));
  report.client = false;
  CHECK(for_people(report) == "served 10.0.0.1: complete and correct\n");
}

// 2 bytes a message in 10 microseconds each: a slow device must not show as zero.
void results__small_rates_are_not_zero() {
  Report report{"dapple-bw", "ia0", "10.0.0.1", true, some(), {{2, 10, {}, {}}}, {}};
  report.results[0].bandwidth = bandwidth_of({0.00001, 0.00002, 0.00003}, 2, 1);
  CHECK(for_people(report).find("BW average[Gb/sec]  MsgRate[Mpps]\n") != std::string::npos);
  CHECK(for_people(report).find("  0.002               0.100000\n") != std::string::npos);
  CHECK(as_json(report).find("\"rate_mpps\": 0.1") != std::string::npos);
  CHECK(as_json(report).find("\"bw_average_gbit_s\": 0.002") != std::string::npos);
}

void size__as_it_is_documented() {
  const auto is = [](const char* text, uint64_t bytes) { return dapple::size_of(text) == bytes; };
  CHECK(is("1", 1) && is("65536", 65536) && is("64k", 65536) && is("64K", 65536) && is("8M", 8 << 20) &&
        is("1g", 1 << 30));
  CHECK(is("64KiB", 65536) && is("64kB", 65536) && is("12B", 12));
  for (const char* wrong : {"", "k", "-1", "+1", " 1", "1 k", "1.5M", "1x", "1kk", "1i", "1iB", "18446744073709551616",
                            "18014398509481984k", "0x10"}) {
    CHECK(!dapple::size_of(wrong));
  }
}

void child__tells_a_line_and_ends_well() {
  Child child([](const auto& tell) {
    tell("10.0.0.1 5");
    return true;
  });
  CHECK_EQUAL(child.await_line(), std::string("10.0.0.1 5"));
  child.await_end();
}

std::string failure_of(Child& child, void (*use)(Child&)) {
  try {
    use(child);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

void child__that_fails_is_noticed() {
  Child mute([](const auto&) { return false; });
  CHECK(failure_of(mute, [](Child& c) { (void)c.await_line(); }).starts_with("the server has ended"));
  CHECK(failure_of(mute, [](Child& c) { c.await_end(); }).starts_with("the server failed"));
  Child killed([](const auto&) {
    for (;;) pause();
    return true;
  });
}

void host__address_is_of_the_family() {
  CHECK(address_of_host("127.0.0.1", AF_INET).ss_family == AF_INET);
  CHECK(address_of_host("::1", AF_INET6).ss_family == AF_INET6);
  CHECK(address_of_host("::1", AF_UNSPEC).ss_family == AF_INET6);
  const auto problem = [](const char* host, int family) -> std::string {
    try {
      (void)address_of_host(host, family);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK(problem("::1", AF_INET).starts_with("::1 has no IPv4 address, which our IA needs;"));
  CHECK(problem("127.0.0.1", AF_INET6).starts_with("127.0.0.1 has no IPv6 address, which our IA needs;"));
}

// Replaces standard error by a terminal while it lives.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)), before_(dup(STDERR_FILENO)) {
    if (grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    const int terminal = open(ptsname(master_), O_RDWR | O_NOCTTY);
    usable_ = terminal >= 0 && dup2(terminal, STDERR_FILENO) == STDERR_FILENO;
    close(terminal);
  }
  ~Terminal() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool usable() const { return usable_; }
  // The text written since the last look.
  std::string shown() {
    constexpr char kEnd = '|';
    std::string all;
    char next = 0;
    std::fputc(kEnd, stderr);
    while (read(master_, &next, 1) == 1 && next != kEnd) all += next;
    return all;
  }

 private:
  int master_;
  int before_;
  bool usable_ = false;
};

// The output after a finished round of a run that is long enough to show progress.
std::string shown_at(Terminal& terminal, uint64_t size, uint64_t total, uint64_t done) {
  {
    Progress progress(size, total);
    std::this_thread::sleep_for(std::chrono::milliseconds(510));
    progress.at(done);
  }
  return terminal.shown();
}

void progress__of_few_rounds_or_large_messages_is_seen_at_each() {
  std::string few;
  std::string large;
  std::string small;
  std::string small_later;
  {
    Terminal terminal;
    if (!terminal.usable()) {
      test_skipped = true;
      return;
    }
    few = shown_at(terminal, 2, 10, 1);
    large = shown_at(terminal, 1 << 23, 1000, 1);
    small = shown_at(terminal, 2, 1000, 1);
    small_later = shown_at(terminal, 2, 1000, 64);
  }
  CHECK(few.find("2 bytes: 1 of 10 (10 %)") != few.npos);
  CHECK(large.find("8388608 bytes: 1 of 1000 (0 %)") != large.npos);
  // The clock is not read.
  CHECK(small.find("of") == small.npos);
  CHECK(small_later.find("2 bytes: 64 of 1000 (6 %)") != small_later.npos);
}

void failure__says_what_a_status_means_or_is_called() {
  CHECK_EQUAL(text_of(DAT_DTO_ERR_TRANSPORT), "the peer no longer answers");
  CHECK_EQUAL(text_of(DAT_DTO_ERR_LOCAL_PROTECTION), "DAT_DTO_ERR_LOCAL_PROTECTION");
  CHECK_EQUAL(text_of(static_cast<DAT_DTO_COMPLETION_STATUS>(77)), "unknown status");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(latency__percentiles_of_a_thousand),
      TEST(latency__one_sample_is_all_of_them),
      TEST(bandwidth__peak_is_of_the_fastest_window),
      TEST(parameters__survive_the_wire),
      TEST(parameters__of_strangers_are_refused),
      TEST(parameters__sizes),
      TEST(pattern__a_wrong_byte_is_named),
      TEST(results__as_a_table_and_as_json),
      TEST(results__small_rates_are_not_zero),
      TEST(size__as_it_is_documented),
      TEST(child__tells_a_line_and_ends_well),
      TEST(child__that_fails_is_noticed),
      TEST(refusal__says_why),
      TEST(refusal__of_strangers_gives_no_reason),
      TEST(size__is_limited_by_what_is_done),
      TEST(host__address_is_of_the_family),
      TEST(progress__of_few_rounds_or_large_messages_is_seen_at_each),
      TEST(failure__says_what_a_status_means_or_is_called),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
