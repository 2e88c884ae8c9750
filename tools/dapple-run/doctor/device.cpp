// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The trial: what a program does first, in a process with the device's libraries. libibverbs is loaded as a program's
// plug-in would load it, because dapple-run must also start where there is none.
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "tools/dapple-run/doctor/doctor.hpp"
#include "tools/dapple-run/doctor/line.hpp"

namespace dapple::run::doctor {
namespace {

// The functions of libibverbs that the trial calls.
struct Verbs {
  decltype(&ibv_get_device_list) get_device_list = nullptr;
  decltype(&ibv_free_device_list) free_device_list = nullptr;
  decltype(&ibv_get_device_name) get_device_name = nullptr;
  decltype(&ibv_open_device) open_device = nullptr;
  decltype(&ibv_close_device) close_device = nullptr;
  decltype(&ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&ibv_create_cq) create_cq = nullptr;
  decltype(&ibv_destroy_cq) destroy_cq = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load(Verbs& verbs) {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
  return library != nullptr && find(library, "ibv_get_device_list", verbs.get_device_list) &&
         find(library, "ibv_free_device_list", verbs.free_device_list) &&
         find(library, "ibv_get_device_name", verbs.get_device_name) &&
         find(library, "ibv_open_device", verbs.open_device) && find(library, "ibv_close_device", verbs.close_device) &&
         find(library, "ibv_alloc_pd", verbs.alloc_pd) && find(library, "ibv_dealloc_pd", verbs.dealloc_pd) &&
         find(library, "ibv_create_cq", verbs.create_cq) && find(library, "ibv_destroy_cq", verbs.destroy_cq);
}

// Null, or the call that failed, with errno.
const char* use(const Verbs& verbs, ibv_device* device) {
  ibv_context* context = verbs.open_device(device);
  if (context == nullptr) return "ibv_open_device";
  const char* failed = nullptr;
  ibv_pd* domain = verbs.alloc_pd(context);
  if (domain == nullptr) failed = "ibv_alloc_pd";
  ibv_cq* queue = failed == nullptr ? verbs.create_cq(context, 16, nullptr, nullptr, 0) : nullptr;
  if (failed == nullptr && queue == nullptr) failed = "ibv_create_cq";
  const int error = errno;
  if (queue != nullptr) verbs.destroy_cq(queue);
  if (domain != nullptr) verbs.dealloc_pd(domain);
  verbs.close_device(context);
  errno = error;
  return failed;
}

// The names of the software devices, as dappled knows them.
std::vector<soft::DeviceInfo> own_devices(soft::Problem& problem) {
  std::vector<soft::DeviceInfo> devices;
  soft::DeviceList list;
  const auto link = soft::DaemonLink::open(problem);
  if (link == nullptr || !link->devices(list, problem)) return devices;
  for (uint32_t i = 0; i < list.count; i++) {
    const auto device = std::make_unique<soft::DeviceInfo>();
    if (link->device(list.indexes[i], *device, problem)) devices.push_back(*device);
  }
  return devices;
}

Line trial() {
  const auto fails = [](const std::string& why) { return Line{Verdict::kFails, "device", why}; };
  Verbs verbs;
  if (!load(verbs)) return fails("no program can be tried without libibverbs");
  soft::Problem problem;
  const std::vector<soft::DeviceInfo> wanted = own_devices(problem);
  if (wanted.empty()) return fails(problem.line[0] != '\0' ? problem.line : "no network device has a software device");
  int count = 0;
  errno = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  if (list == nullptr) return fails(std::string("ibv_get_device_list fails: ") + strerror(errno));
  Line line{Verdict::kWorks, "device", {}};
  std::string opened, hidden;
  for (const soft::DeviceInfo& device : wanted) {
    ibv_device* found = nullptr;
    for (int i = 0; i < count; i++) {
      if (strcmp(verbs.get_device_name(list[i]), device.name) == 0) found = list[i];
    }
    if (found == nullptr) return fails(std::string(device.name) + " is not among the devices that libibverbs lists");
    errno = 0;
    if (const char* call = use(verbs, found); call != nullptr)
      return fails(std::string(call) + " fails on " + device.name + ": " + strerror(errno));
    opened += (opened.empty() ? "" : ", ") + std::string(device.name) + " (" + device.netdev + ")";
    if (access((std::string("/sys/class/infiniband/") + device.name + "/node_guid").c_str(), R_OK) != 0)
      hidden += (hidden.empty() ? "" : ", ") + std::string(device.name);
  }
  verbs.free_device_list(list);
  line.text = "a program opens " + opened;
  if (hidden.empty()) {
    line.text += ", and sees the files in /sys";
  } else {
    line.verdict = Verdict::kPartly;
    line.text += "; it does not see the files of " + hidden + " in /sys";
  }
  return line;
}

}  // namespace

int examine_device() {
  const Line line = trial();
  print(line);
  return line.verdict == Verdict::kFails ? 1 : 0;
}

}  // namespace dapple::run::doctor
