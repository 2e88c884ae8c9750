// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The output of dapple-info, from given data.
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ibverbs-glue/capabilities.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "tools/dapple-info/dat.hpp"
#include "tools/dapple-info/devices.hpp"
#include "tools/dapple-info/libibverbs.hpp"
#include "tools/dapple-info/memlock.hpp"
#include "tools/dapple-info/settings.hpp"
#include "tools/dapple-info/soft.hpp"
#include "tools/report/table.hpp"

using namespace dapple;
using namespace dapple::info;

namespace {

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void settings__those_that_are_set() {
  provider::Settings settings;
  CHECK_EQUAL(settings_for_people(settings), "");
  CHECK_EQUAL(document_of(settings_as_json(settings)), "{}\n");
  settings.seed = "7";
  settings.emulate = "1";
  settings.rpma_native = "no";
  CHECK_EQUAL(settings_for_people(settings),
              "Variables of dapple in this environment:\n"
              "  DAPPLE_RPMA_NATIVE=no\n  DAPPLE_EMULATE=1\n  DAPPLE_SEED=7\n");
  CHECK(holds(document_of(settings_as_json(settings)), "\"DAPPLE_SEED\": \"7\""));
}

// Text that is not UTF-8, such as a damaged name, must not get into a UTF-8 document.
void json__text_that_is_no_utf_8() {
  CHECK_EQUAL(document_of({{"t", "\xc3\xa9"}}), "{\n  \"t\": \"\xc3\xa9\"\n}\n");
  CHECK_EQUAL(document_of({{"t",
                            "a\xff"
                            "b"}}),
              "{\n  \"t\": \"a\xef\xbf\xbd"
              "b\"\n}\n");
}

void json__numbers_have_few_digits() {
  CHECK_EQUAL(document_of(rounded(1.23456)), "1.235\n");
  CHECK_EQUAL(document_of(rounded(0.1234567, 6)), "0.123457\n");
  CHECK_EQUAL(document_of(rounded(100)), "100.0\n");
}

SoftReport a_software_device() {
  SoftReport report;
  report.status.process = 77;
  report.status.uid = 1000;
  report.status.members = 3;
  report.status.slots = 9;
  report.status.slots_in_use = 2;
  report.status.dual_stack = 1;
  soft::DeviceInfo device;
  strcpy(device.name, "dapple0");
  strcpy(device.netdev, "eth0");
  device.guid = 0x0123456789abcdef;
  device.netdev_mtu = 1500;
  device.up = 1;
  device.gids[1].valid = 1;
  device.gids[1].gid[15] = 1;
  report.devices.push_back(device);
  return report;
}

void software_device__of_dappled() {
  SoftReport report = a_software_device();
  for (size_t i = 0; i < soft::kCounterCount; i++) {
    if (std::string(soft::kCounterNames[i].key) == "bad_icrc") report.status.counters[i] = 4711;
  }
  const std::string text = soft_for_people(report, Counters::kNonzero);
  CHECK(holds(text, "dapple0  eth0    up     1500        1024  0123:4567:89ab:cdef\n"));
  CHECK(holds(text, "dapple0  1      RoCE v2  ::1\n"));
  CHECK(holds(text, "for IPv4 and IPv6; 2 of 8 slots"));
  CHECK(holds(text, "process 77 of user 1000; 2 programs\n"));
  CHECK(holds(text, "\n\nBAD PACKETS"));
  CHECK(holds(text, "changed by NAT  4711\n"));
  // No program has used rdma_cm, and no peer has connected.
  CHECK(!holds(text, "CONNECTION MANAGEMENT"));
  const std::string json = document_of(soft_as_json(report));
  CHECK(holds(json, "\"problem\": null"));
  CHECK(holds(json, "\"owner\": \"dappled\""));
  CHECK(holds(json, "\"programs\": 2"));
  CHECK(holds(json, "\"bad_icrc\": 4711"));
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void software_device__without_counters_that_are_0() {
  SoftReport report = a_software_device();
  report.status.connection_management.channels = 1;
  const std::string one = soft_for_people(report, Counters::kNonzero), all = soft_for_people(report, Counters::kAll);
  CHECK(lines_of(one) < 20);
  CHECK(!holds(one, "COUNTER"));
  CHECK(!holds(one, "BAD PACKETS"));
  CHECK(holds(one, "CONNECTION MANAGEMENT  COUNT\n"));
  CHECK(one.ends_with("\n\n--verbose also lists the counters that are 0.\n"));
  CHECK(lines_of(all) > soft::kCounterCount + soft::all_of(report.status.connection_management).size());
  CHECK(holds(all, "COUNTER"));
  CHECK(holds(all, "BAD PACKETS"));
  CHECK(!holds(all, "--verbose"));

  report.status.connection_management = {};
  CHECK(soft_for_people(report, Counters::kNonzero).ends_with("\n\nAll counters are 0; --verbose lists them.\n"));
  CHECK(!holds(soft_for_people(report, Counters::kAll), "CONNECTION MANAGEMENT"));
  CHECK(holds(document_of(soft_as_json(report)), "\"bad_icrc\": 0"));
}

void software_device__with_connections() {
  SoftReport report = a_software_device();
  soft::CmStatus& status = report.status.connection_management;
  status.channels = 2;
  status.listeners = 17;
  status.unserved = 4712;
  status.no_datagram = 9;
  const std::string text = soft_for_people(report, Counters::kNonzero);
  CHECK(holds(text, "CONNECTION MANAGEMENT "));
  CHECK(holds(text, "\nlisteners now "));
  CHECK(holds(text, "  17\n"));
  CHECK(holds(text, "requests refused: no listener "));
  CHECK(holds(text, "  4712\n"));
  const std::string json = document_of(soft_as_json(report));
  CHECK(holds(json, "\"connection_management\": {"));
  CHECK(holds(json, "\"listeners\": 17"));
  CHECK(holds(json, "\"unserved\": 4712"));
  CHECK(holds(json, "\"no_datagram\": 9"));
}

void software_device__port_of_others() {
  SoftReport report = a_software_device();
  report.status.slots = report.status.slots_in_use = 0;
  report.owner.kind = soft::PortOwner::Kind::kNobody;
  CHECK(holds(soft_for_people(report, Counters::kNonzero), "4791: free"));
  // All counters are 0.
  CHECK(!holds(soft_for_people(report, Counters::kNonzero), "BAD PACKETS"));
  report.owner.kind = soft::PortOwner::Kind::kKernel;
  CHECK(holds(soft_for_people(report, Counters::kNonzero), "rdma_rxe has UDP port 4791"));
  report.owner.kind = soft::PortOwner::Kind::kProcess;
  report.owner.uid = 5;
  report.owner.process = 99;
  strcpy(report.owner.program, "thief");
  CHECK(holds(soft_for_people(report, Counters::kNonzero), "Process 99 (thief) of user 5"));
  report.problem = "dappled was not found";
  const std::string text = soft_for_people(report, Counters::kNonzero);
  CHECK(holds(text, "not available: dappled was not found\n"));
  CHECK(text.find('\n') == text.size() - 1);
}

void table__columns_are_as_wide_as_their_widest_word() {
  CHECK(format_table({{"A", "LONG"}, {"wide", ""}, {"", "x"}}) == "A     LONG\nwide  -\n-     x\n");
  CHECK(format_table({}).empty());
  CHECK(format_table({{"A", "B", "C"}, {"1"}}) == "A  B  C\n1\n");
}

Device device(const char* name) {
  Device made;
  made.kernel.name = name;
  made.kernel.driver = "mlx5";
  made.kernel.protocol = "ib";
  made.kernel.ports = {{1, "ACTIVE", "LinkUp", ""}, {2, "DOWN", "Disabled", "ib0"}};
  return made;
}

void devices__two_ports_and_one_that_does_not_open() {
  std::vector<Device> devices = {device("mlx5_0"), device("mlx5_1")};
  Attributes attr{};
  attr.coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  attr.certainty = DAPPLEDV_CERTAINTY_FIRMWARE;
  attr.reason = DAPPLEDV_REASON_FIRMWARE;
  attr.explanation = "because";
  attr.clean_instruction = "wash";
  attr.clean_invalidate_instruction = "wash out";
  attr.persist_instruction = "hang out";
  attr.persist_supported = 1;
  attr.capabilities.emplace();
  // A driver without windows that does not clear the flag.
  attr.capabilities->orig_attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW;
  attr.capabilities->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  attr.capabilities->device_cap_flags_ex = dapple::verbs::kDeviceAtomicWrite;
  devices[0].attr = attr;
  devices[0].overlay = "no: foreign";
  devices[1].problem = "cannot be opened: so";
  const std::string text = devices_for_people(devices);
  CHECK(holds(text, "mlx5_0  mlx5    ib        1     ACTIVE  -       non-coherent (CPU caches)  firmware  because\n"));
  CHECK(holds(text, "mlx5_0  mlx5    ib        2     DOWN    ib0     non-coherent (CPU caches)  firmware  as above\n"));
  CHECK(holds(text,
              "mlx5_1  mlx5    ib        1     ACTIVE  -       unknown                    -         cannot be "
              "opened: so\n"));
  CHECK(holds(text, "ATTRIBUTE                     mlx5_0\n"));
  CHECK(holds(text, "on-demand paging              yes, implicit too\n"));
  CHECK(holds(text, "memory windows                no\n"));
  CHECK(holds(text, "atomic write                  yes\n"));
  CHECK(holds(text, "flush to visibility           no\n"));
  CHECK(holds(text, "persist                       hang out\n"));
  CHECK(holds(text, "maintenance refused, because  -\n"));
  CHECK(holds(text, "overlay possible              no: foreign\n"));
  devices[0].attr->caches_persistent = DAPPLEDV_ANSWER_YES;
  CHECK(holds(devices_for_people(devices), "persist                       none needed (eADR)\n"));
  devices[0].attr->persist_supported = 0;
  CHECK(holds(devices_for_people(devices), "persist                       not possible\n"));
  CHECK(what_to_run(devices).empty());
  devices[1].kernel.driver = "rxe";
  CHECK(holds(what_to_run(devices), "dapple-run --emulate PROGRAM"));
  const std::string json = document_of(devices_as_json(devices));
  CHECK(holds(json, "\"attributes\": null,\n    \"problem\": \"cannot be opened: so\""));
  CHECK(holds(json, "\"reason\": \"because\""));
}

void devices__none_says_how_to_get_one() {
  const std::string text = how_to_get_a_device("wlan7", true);
  CHECK(holds(text, "rdma link add rxe0 type rxe netdev wlan7"));
  CHECK(holds(text, "rdma link add siw0 type siw netdev wlan7"));
  CHECK(holds(text, "dapple-softroce -- COMMAND"));
  const std::string without = how_to_get_a_device("wlan7", false);
  CHECK(!holds(without, "softroce") && holds(without, "(module siw)\nOn rxe"));
  CHECK(!some_netdev().empty());
}

void softroce__is_looked_for_in_folders() {
  char folder[] = "/tmp/dapple-info-path-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  const std::string folders = std::string("/nowhere::") + folder;
  CHECK(!has_softroce(folders));
  const std::string program = std::string(folder) + "/dapple-softroce";
  CHECK(symlink("/bin/true", program.c_str()) == 0);
  CHECK(has_softroce(folders));
  unlink(program.c_str());
  rmdir(folder);
  CHECK(!has_softroce(""));
  // This test is a program of the build's folder.
  CHECK(program_folders().starts_with('/') && holds(program_folders(), "/bin:"));
}

void memlock__says_what_limits_and_how_to_raise_it() {
  const std::string limited = memlock_for_people({65536, RLIM_INFINITY, 0, false});
  CHECK(holds(limited, "64 KiB; could be raised to: no limit"));
  CHECK(holds(limited, "ulimit -l"));
  CHECK(holds(limited, "1050624 for 1 GiB and 16 connections"));
  CHECK(holds(limited, "which is not allowed here"));
  CHECK(!holds(memlock_for_people({RLIM_INFINITY, RLIM_INFINITY, 0, false}), "ulimit"));
  CHECK(holds(memlock_for_people({65536, 65536, 0, true}), "CAP_IPC_LOCK"));
}

// RDMAV_DRIVERS as dapple-run sets it, but with a driver for another libibverbs.
void libibverbs__a_driver_that_the_loaders_word_names() {
  namespace fs = std::filesystem;
  char folder[] = "/tmp/dapple-info-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  std::string lib = fs::path(read_libibverbs().path).parent_path().string();
  if (lib.starts_with("/usr")) lib.erase(0, 4);
  fs::create_directories(folder + lib);
  std::ofstream(folder + lib + "/libnew-rdmav99.so") << "x";
  setenv("RDMAV_DRIVERS", (std::string(folder) + "/$LIB/libnew").c_str(), 1);
  const std::vector<std::string> found = read_libibverbs().foreign_drivers;
  unsetenv("RDMAV_DRIVERS");
  fs::remove_all(folder);
  CHECK(std::find(found.begin(), found.end(), "libnew-rdmav99.so") != found.end());
}

void libibverbs__what_does_not_fit_is_named() {
  CHECK(driver_abi("libmlx5-rdmav34.so") == 34);
  CHECK(driver_abi("libdapple-rdmav65.so") == 65);
  for (const char* other :
       {"libmlx5.so.1", "libmlx5-rdmav.so", "libmlx5-rdmav3x.so", "mlx5-rdmav34.so", "libx-rdmav34.so.1"}) {
    CHECK(driver_abi(other) == 0);
  }
  CHECK(libibverbs_for_people({"/lib/libibverbs.so.1", 34, "", {}}).empty());
  const std::string text = libibverbs_for_people({"/lib/libibverbs.so.1", 66, "unheard of", {"libdapple-rdmav65.so"}});
  CHECK(holds(text, "dapple-run and dappledv_attach() cannot work with /lib/libibverbs.so.1: unheard of\n"));
  CHECK(holds(text, "libdapple-rdmav65.so is for another libibverbs, which looks for names with -rdmav66.so here\n"));
}

void dat__no_entry_says_how_one_is_made() {
  DatReport report{{"libdat2.so.2", ""}, {"libdat.so.1", "no such file"}, "", {}};
  CHECK(holds(dat_for_people(report), "No dat.conf was found"));
  CHECK(holds(dat_for_people(report), "libdaplofa.so.2"));
  // The test asks for nothing of 1.2.
  CHECK(!holds(dat_for_people(report), "cannot be used"));
  report.conf_path = "/etc/dat.conf";
  report.registry.problem = "gone";
  report.entries.push_back({"x", 2, 0, true, "automatic", "lib.so", "d0 0", true, "", false});
  CHECK(holds(dat_for_people(report), "The registry cannot be used: gone"));
  CHECK(holds(dat_for_people(report), "x     2.0  safe     automatic  lib.so   d0 0        yes\n"));
  CHECK(!holds(dat_for_people(report), "no such file"));
  report.entries.push_back({"y", 1, 2, true, "/etc/dat.conf:1", "lib.so", "d0 0", false, "not tried", false});
  CHECK(holds(dat_for_people(report), "The registry cannot be used: no such file"));
}

// As with the file of Debian's libdapl2 on a machine with one device.
void dat__lines_for_other_machines_are_folded() {
  DatReport report{{"libdat2.so.2", ""}, {"libdat.so.1", ""}, "/etc/dat.conf", {}};
  report.entries.push_back({"dead1", 2, 0, false, "/etc/dat.conf:1", "lib.so", "ib0 0", false, "not here", true});
  CHECK(holds(dat_for_people(report), "There is no provider of uDAPL"));
  CHECK(holds(dat_for_people(report), "1 line names a device that is not here; --all shows it\n"));
  for (int i = 0; i < 61; ++i) report.entries.push_back(report.entries[0]);
  report.entries.push_back({"alive", 2, 0, false, "automatic", "lib.so", "d0 0", true, "", false});
  const std::string text = dat_for_people(report);
  CHECK(holds(text, "alive "));
  CHECK(!holds(text, "dead1"));
  CHECK(holds(text, "62 lines name devices that are not here; --all shows them\n"));
  const std::string json = document_of(dat_as_json(report));
  CHECK(holds(json, "\"opens\": false,\n      \"tried\": false"));
  CHECK(holds(json, "\"opens\": true,\n      \"tried\": true"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(json__text_that_is_no_utf_8),
      TEST(json__numbers_have_few_digits),
      TEST(settings__those_that_are_set),
      TEST(software_device__of_dappled),
      TEST(software_device__without_counters_that_are_0),
      TEST(software_device__with_connections),
      TEST(software_device__port_of_others),
      TEST(table__columns_are_as_wide_as_their_widest_word),
      TEST(devices__two_ports_and_one_that_does_not_open),
      TEST(devices__none_says_how_to_get_one),
      TEST(softroce__is_looked_for_in_folders),
      TEST(memlock__says_what_limits_and_how_to_raise_it),
      TEST(libibverbs__a_driver_that_the_loaders_word_names),
      TEST(libibverbs__what_does_not_fit_is_named),
      TEST(dat__no_entry_says_how_one_is_made),
      TEST(dat__lines_for_other_machines_are_folded),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
