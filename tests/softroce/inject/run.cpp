// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/softroce/inject/run.hpp"

#include <dat2/dat_ib_extensions.h>
#include <sys/mman.h>

#include <new>

#include "tests/softroce/inject/inject.h"

namespace dapple::inject {
namespace {

std::string event_name(DAT_EVENT_NUMBER number) {
  switch (static_cast<int>(number)) {
    case DAT_CONNECTION_REQUEST_EVENT:
      return "event CONNECTION_REQUEST";
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return "event ESTABLISHED";
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      return "event PEER_REJECTED";
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return "event NON_PEER_REJECTED";
    case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
      return "event ACCEPT_COMPLETION_ERROR";
    case DAT_CONNECTION_EVENT_DISCONNECTED:
      return "event DISCONNECTED";
    case DAT_CONNECTION_EVENT_BROKEN:
      return "event BROKEN";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      return "event TIMED_OUT";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      return "event UNREACHABLE";
    case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
      return "event IA_CATASTROPHIC";
    case DAT_IB_UD_CONNECTION_REQUEST_EVENT:
      return "event UD_CONNECTION_REQUEST";
    case DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED:
      return "event UD_ESTABLISHED";
    case DAT_IB_UD_CONNECTION_REJECT_EVENT:
      return "event UD_REJECT";
    case DAT_IB_UD_CONNECTION_ERROR_EVENT:
      return "event UD_ERROR";
    default:
      return "event " + std::to_string(static_cast<int>(number));
  }
}

}  // namespace

std::string name_of(DAT_RETURN status) {
  if (status == DAT_SUCCESS) return "success";
  const char* type = nullptr;
  const char* subtype = nullptr;
  if (dat_strerror(status, &type, &subtype) != DAT_SUCCESS) return "a value without a name";
  // A type without its class is no error for programs that test the class.
  if ((status & DAT_CLASS_ERROR) != DAT_CLASS_ERROR) return std::string("unclassed ") + type;
  std::string name = type;
  if (DAT_GET_SUBTYPE(status) != DAT_NO_SUBTYPE) name += std::string(" ") + subtype;
  return name;
}

Run::Run()
    : memory_(static_cast<unsigned char*>(
          mmap(nullptr, kMemorySize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
}

Run::~Run() {
  munmap(memory_, kMemorySize);
}

void Run::note_where(const char* name) {
  if (!where_.empty() || inject_fired() == kNotFired) return;
  where_ = inject_fired() == kFiredOnMain ? name : "a thread";
}

bool Run::accepts(const char* name, DAT_RETURN status) {
  const bool fired_now = where_.empty() && inject_fired() == kFiredOnMain;
  note_where(name);
  if (status == DAT_SUCCESS) return true;
  const std::string what = name_of(status);
  if (inject_fired() == kNotFired || outcome_ != "success") {
    problem_ = std::string(name) + ": " + what;
    stopped_ = true;
    throw Stopped();
  }
  if (!fired_now) stop_with(std::string(name) + ": " + what);
  outcome_ = what;
  return false;
}

void Run::stop_lasting(DAT_RETURN status) {
  outcome_ += "; lasting: " + name_of(status);
  stopped_ = true;
  throw Stopped();
}

void Run::stop_with(const std::string& what) {
  if (inject_fired() == kNotFired || outcome_ != "success") {
    problem_ = what;
  } else {
    outcome_ = what;
  }
  stopped_ = true;
  throw Stopped();
}

DAT_EVENT Run::expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  DAT_CALL(*this, dat_evd_wait, evd, kWaitUs, 1, &event, &more);
  if (event.event_number != number) stop_with(event_name(event.event_number));
  return event;
}

void Run::expect_done(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  const DAT_EVENT event = expect(evd, number);
  const int status = number == DAT_RMR_BIND_COMPLETION_EVENT
                         ? static_cast<int>(event.event_data.rmr_completion_event_data.status)
                         : static_cast<int>(event.event_data.dto_completion_event_data.status);
  if (status != 0) stop_with("completion status " + std::to_string(status));
}

void Run::look_at_errors() {
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  if (inject_fired() == kFiredElsewhere && outcome_ == "success") {
    note_where("");
    if (dat_evd_wait(async, 200'000, 1, &event, &more) == DAT_SUCCESS) stop_with(event_name(event.event_number));
  } else if (dat_evd_dequeue(async, &event) == DAT_SUCCESS) {
    stop_with(event_name(event.event_number));
  }
}

void Run::open(DAT_BOOLEAN thread_safe) {
  char name[] = "inject";
  call("dat_ia_open", [&] {
    async = DAT_HANDLE_NULL;
    ia = DAT_HANDLE_NULL;
    return dat_ia_openv(name, 8, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, thread_safe);
  });
  DAT_CALL(*this, dat_ia_query, ia, nullptr, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_NONE, nullptr);
  DAT_CALL(*this, dat_pz_create, ia, &pz);
}

void Run::close() {
  DAT_CALL(*this, dat_pz_free, pz);
  look_at_errors();
  DAT_CALL(*this, dat_ia_close, ia, DAT_CLOSE_GRACEFUL_FLAG);
  ia = DAT_HANDLE_NULL;
}

void Run::close_abruptly() {
  if (ia == DAT_HANDLE_NULL) return;
  const DAT_RETURN status = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
  ia = DAT_HANDLE_NULL;
  if (status != DAT_SUCCESS && problem_.empty()) problem_ = "abrupt dat_ia_close: " + name_of(status);
}

}  // namespace dapple::inject
