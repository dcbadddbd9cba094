#include "cli/json_value.hpp"
#include "cli/plain_text.hpp"

#include <optional>

namespace holdfast::cli {

std::string_view name_of(spi::mode mode) {
  switch (mode) {
    case spi::mode::exclusive:
      return "exclusive";
    case spi::mode::shared:
      return "shared";
    case spi::mode::permit:
      return "permit";
  }
  return "unknown";
}

std::string_view name_of(spi::event_kind kind) {
  switch (kind) {
    case spi::event_kind::queued:
      return "queued";
    case spi::event_kind::granted:
      return "granted";
    case spi::event_kind::renewed:
      return "renewed";
    case spi::event_kind::released:
      return "released";
    case spi::event_kind::expired:
      return "expired";
    case spi::event_kind::withdrawn:
      return "withdrawn";
    case spi::event_kind::forced:
      return "forced";
  }
  return "unknown";
}

std::string_view name_of(spi::check::status status) {
  switch (status) {
    case spi::check::status::ok:
      return "ok";
    case spi::check::status::warn:
      return "warn";
    case spi::check::status::fail:
      return "fail";
  }
  return "unknown";
}

namespace json {

namespace {

value milliseconds(const std::optional<duration>& span) {
  if (!span) return nullptr;
  return std::chrono::floor<std::chrono::milliseconds>(*span).count();
}

value fence(const std::optional<fence_token>& token) {
  if (!token) return nullptr;
  return token->value();
}

value since(const std::optional<duration>& held_for, wall_time now) {
  if (!held_for) return nullptr;
  return rfc3339(now - std::chrono::duration_cast<wall_time::duration>(*held_for));
}

}  // namespace

std::string line(const value& document) {
  return document.dump(-1, ' ', false, value::error_handler_t::replace) + "\n";
}

value holders_value(const std::vector<spi::holder>& all, wall_time now) {
  value holders = value::array();
  for (const spi::holder& one : all) {
    value holder{{"claim", one.claim},
                 {"mode", name_of(one.mode)},
                 {"permits", one.permits},
                 {"fence", fence(one.fence)},
                 {"ttl_ms", milliseconds(one.remaining)},
                 {"payload", one.payload},
                 {"since", since(one.held_for, now)}};
    if (one.by_session) holder["by_session"] = true;
    if (!one.kept_by.empty()) holder["kept_by"] = one.kept_by;
    holders.push_back(std::move(holder));
  }
  return holders;
}

value resource_value(const std::string& name, const spi::resource_state& state, wall_time now) {
  value waiters = value::array();
  for (const spi::waiting& one : state.waiters) {
    waiters.push_back({{"claim", one.claim},
                       {"mode", name_of(one.mode)},
                       {"payload", one.payload},
                       {"permits", one.permits},
                       {"waiting_ms", milliseconds(one.waiting_for)}});
  }
  value document{
      {"name", name}, {"holders", holders_value(state.holders, now)}, {"waiters", waiters}};
  if (state.blocked_for) document["blocked_ms"] = milliseconds(state.blocked_for);
  return document;
}

std::string resource(const std::string& name, const spi::resource_state& state, wall_time now) {
  return line(resource_value(name, state, now));
}

std::string resources(const std::vector<spi::resource_summary>& all) {
  value list = value::array();
  for (const spi::resource_summary& one : all) {
    list.push_back({{"name", one.name}, {"holders", one.holders}, {"waiters", one.waiters}});
    if (one.blocked_for) list.back()["blocked_ms"] = milliseconds(one.blocked_for);
    if (cannot_be_read(one)) list.back()["damaged"] = true;
  }
  return line(list);
}

value checks_value(const std::vector<spi::check>& all) {
  value list = value::array();
  for (const spi::check& one : all) {
    list.push_back({{"check", one.name},
                    {"status", name_of(one.state)},
                    {"detail", one.detail},
                    {"remedy", one.remedy}});
  }
  return list;
}

std::string checks(const std::vector<spi::check>& all) { return line(checks_value(all)); }

value event_value(const spi::store_event& event, wall_time at) {
  return {{"at", rfc3339(at)},       {"event", name_of(event.kind)}, {"name", event.name},
          {"claim", event.claim},    {"mode", name_of(event.mode)},  {"fence", fence(event.fence)},
          {"payload", event.payload}};
}

std::string event(const spi::store_event& event, wall_time at) {
  return line(event_value(event, at));
}

}  // namespace json

}  // namespace holdfast::cli
