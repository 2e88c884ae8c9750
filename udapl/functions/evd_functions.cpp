// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/evd_take.hpp"
#include "udapl/core/refusal.hpp"
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

static_assert(DAT_EVD_SOFTWARE_FLAG == int{kEvdSoftware} && DAT_EVD_CR_FLAG == int{kEvdCr} &&
              DAT_EVD_DTO_FLAG == int{kEvdDto} && DAT_EVD_CONNECTION_FLAG == int{kEvdConnection} &&
              DAT_EVD_RMR_BIND_FLAG == int{kEvdRmrBind} && DAT_EVD_ASYNC_FLAG == int{kEvdAsync});
static_assert(DAT_TIMEOUT_INFINITE == Evd::kInfinite);

namespace {

bool is_qlen(const Ia& ia, DAT_COUNT min_qlen) {
  if (min_qlen > 0) return true;
  log_refused(ia, "an EVD's length", min_qlen, "it must be above 0");
  return false;
}

bool fits(const Ia& ia, DAT_COUNT min_qlen) {
  return within(ia, "an EVD's length", static_cast<uint64_t>(min_qlen), static_cast<uint64_t>(ia.device().max_cqe));
}

// Receives the events that the core takes off an EVD.
struct ConsumersEvent {
  Evd& evd;
  DAT_EVENT& out;
  void operator()(const Event& event) const { to_dat(event, out); }
  void completion(const WorkRequest& request, uint64_t length) const {
    out.event_number = DAT_DTO_COMPLETION_EVENT;
    out.evd_handle = &evd;
    auto& data = out.event_data.dto_completion_event_data;
    data.ep_handle = request.ep;
    data.user_cookie.as_64 = request.cookie;
    data.status = DAT_DTO_SUCCESS;
    data.transfered_length = static_cast<decltype(data.transfered_length)>(length);
    fill_operation(data, request.operation, 0);
  }
};

}  // namespace

DAT_RETURN evd_create(Ia& ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd_handle) {
  if (!is_qlen(ia, min_qlen)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  Cno* notified = nullptr;
  if (!find_optional(cno, ia, notified)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  if (!(flags & kEvdStreams) || (flags & ~kEvdStreams)) {
    log_refused(ia, "an EVD's evd_flags", flags, flags & ~kEvdStreams ? "unknown flags" : "no stream is given");
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  }
  if (!evd_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  if (!fits(ia, min_qlen)) return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
  return controlled([&]() -> Result<> {
    auto evd = Evd::create(ia, static_cast<uint32_t>(min_qlen), flags);
    if (!evd) return tl::unexpected(evd.error());
    if (auto set = (*evd)->set_cno(notified); !set) {
      (void)Evd::free(**evd);
      return set;
    }
    return store(evd, evd_handle);
  });
}

DAT_RETURN evd_query(Evd& evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
  if (auto status = check_query(mask, DAT_EVD_FIELD_ALL, param)) return status;
  *param = {};
  param->ia_handle = consumer_handle(evd.ia());
  param->evd_qlen = static_cast<DAT_COUNT>(evd.qlen());
  param->evd_state = static_cast<DAT_EVD_STATE>((evd.enabled() ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
                                                (evd.waitable() ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE));
  param->cno_handle = evd.cno();
  param->evd_flags = static_cast<DAT_EVD_FLAGS>(evd.streams());
  return DAT_SUCCESS;
}

DAT_RETURN evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                    DAT_COUNT* nmore) {
  auto* evd = object_of<Evd>(evd_handle);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
  if (threshold < 1) return wrong_argument(DAT_INVALID_ARG3, "it must be above 0");
  if (!event) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  if (!nmore) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  uint32_t more = 0;
  const auto result = evd->wait(timeout, static_cast<uint32_t>(threshold), ConsumersEvent{*evd, *event}, more);
  *nmore = static_cast<DAT_COUNT>(more);
  return to_dat(result, {{Subtype::kThreshold, DAT_INVALID_ARG3}});
}

// to_dat(), with a fast path for the result that polling consumers see most.
inline DAT_RETURN to_dat_of_poll(const Result<>& result) {
  if (result) [[likely]]
    return DAT_SUCCESS;
  return result.error().type == Type::kQueueEmpty ? error(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE) : to_dat(result.error());
}

DAT_RETURN evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  auto* evd = object_of<Evd>(evd_handle);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
  if (!event) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return to_dat_of_poll(evd->dequeue(ConsumersEvent{*evd, *event}));
}

DAT_RETURN evd_post_se(Evd& evd, const DAT_EVENT* event) {
  if (!event) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (event->event_number != DAT_SOFTWARE_EVENT) {
    expect_of("the event_number", event->event_number, "it must be DAT_SOFTWARE_EVENT");
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  return to_dat(evd.post_software(event->event_data.software_event_data.pointer), {{Subtype::kEvd, DAT_INVALID_ARG1}});
}

DAT_RETURN evd_set_unwaitable(Evd& evd) {
  evd.set_waitable(false);
  return DAT_SUCCESS;
}

DAT_RETURN evd_clear_unwaitable(Evd& evd) {
  evd.set_waitable(true);
  return DAT_SUCCESS;
}

DAT_RETURN evd_resize(Evd& evd, DAT_COUNT min_qlen) {
  if (!is_qlen(evd.ia(), min_qlen)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!fits(evd.ia(), min_qlen)) return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
  return controlled([&] { return evd.resize(static_cast<uint32_t>(min_qlen)); });
}

DAT_RETURN evd_modify_cno(Evd& evd, DAT_CNO_HANDLE cno) {
  Cno* notified = nullptr;
  if (!find_optional(cno, evd.ia(), notified)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  return controlled([&] { return evd.set_cno(notified); });
}

DAT_RETURN evd_enable(Evd& evd) {
  return controlled([&] { return evd.set_enabled(true); });
}

DAT_RETURN evd_disable(Evd& evd) {
  return controlled([&] { return evd.set_enabled(false); });
}

DAT_RETURN evd_free(Evd& evd) {
  return controlled([&] { return Evd::free(evd); });
}

}  // namespace dapple::udapl::functions
