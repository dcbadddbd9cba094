#include "cli/inspection.hpp"

#include "cli/text.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

template <class Word, std::size_t Count>
std::string_view nth(const std::array<std::string_view, Count>& names, Word word) {
  const auto index = static_cast<std::size_t>(word);
  return index < Count ? names[index] : "unknown";
}

}  // namespace

std::string_view name_of(spi::mode mode) {
  return nth(std::array<std::string_view, 3>{"exclusive", "shared", "permit"}, mode);
}

std::string_view name_of(spi::event_kind kind) {
  return nth(std::array<std::string_view, 7>{"queued", "granted", "renewed", "released", "expired",
                                             "withdrawn", "forced"},
             kind);
}

std::string_view name_of(spi::check::status status) {
  return nth(std::array<std::string_view, 3>{"ok", "warn", "fail"}, status);
}

namespace {

std::string since_text(duration held_for) {
  return rfc3339(std::chrono::system_clock::now() -
                 std::chrono::duration_cast<wall_time::duration>(held_for));
}

std::string mode_text(spi::mode mode, std::uint32_t permits) {
  std::string text(name_of(mode));
  if (mode == spi::mode::permit && permits > 1) text += " x" + std::to_string(permits);
  return text;
}

std::string ttl_text(const spi::holder& one) {
  if (one.remaining) return to_text(*one.remaining);
  return one.by_session ? "session" : "none";
}

std::string who(const spi::holder& one) {
  if (one.kept_by.empty()) return one.payload;
  return one.payload + ", ended; held by " + one.kept_by;
}

}  // namespace

std::string holder_table(const std::vector<spi::holder>& holders) {
  if (holders.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"HOLDER", "MODE", "SINCE", "TTL", "FENCE", "PAYLOAD"}};
  for (const spi::holder& one : holders) {
    rows.push_back({plain(one.claim), mode_text(one.mode, one.permits),
                    one.held_for ? since_text(*one.held_for) : "?", ttl_text(one),
                    one.fence ? std::to_string(one.fence->value()) : "?", plain(who(one))});
  }
  return columns(rows, {4});
}

std::string waiter_table(const std::vector<spi::waiting>& waiters) {
  if (waiters.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"WAITER", "MODE", "WAITING", "PAYLOAD"}};
  for (const spi::waiting& one : waiters) {
    rows.push_back({plain(one.claim), mode_text(one.mode, one.permits),
                    one.waiting_for ? to_text(*one.waiting_for) : "?", plain(one.payload)});
  }
  return columns(rows);
}

namespace json {

namespace {

value fence(const std::optional<fence_token>& token) {
  if (!token) return nullptr;
  return token->value();
}

}  // namespace

value milliseconds(const std::optional<duration>& span) {
  if (!span) return nullptr;
  return std::chrono::floor<std::chrono::milliseconds>(*span).count();
}

std::string line(const value& document) {
  return document.dump(-1, ' ', false, value::error_handler_t::replace) + "\n";
}

value of(const std::vector<spi::holder>& all) {
  value holders = value::array();
  for (const spi::holder& one : all) {
    value holder{{"claim", one.claim},
                 {"mode", name_of(one.mode)},
                 {"permits", one.permits},
                 {"fence", fence(one.fence)},
                 {"ttl_ms", milliseconds(one.remaining)},
                 {"payload", one.payload},
                 {"since", one.held_for ? value(since_text(*one.held_for)) : value(nullptr)}};
    if (one.by_session) holder["by_session"] = true;
    if (!one.kept_by.empty()) holder["kept_by"] = one.kept_by;
    holders.push_back(std::move(holder));
  }
  return holders;
}

value of(const std::string& name, const spi::resource_state& state) {
  value waiters = value::array();
  for (const spi::waiting& one : state.waiters) {
    waiters.push_back({{"claim", one.claim},
                       {"mode", name_of(one.mode)},
                       {"payload", one.payload},
                       {"permits", one.permits},
                       {"waiting_ms", milliseconds(one.waiting_for)}});
  }
  value document{{"name", name}, {"holders", of(state.holders)}, {"waiters", std::move(waiters)}};
  if (state.blocked_for) document["blocked_ms"] = milliseconds(state.blocked_for);
  return document;
}

value of(const std::vector<spi::resource_summary>& all) {
  value list = value::array();
  for (const spi::resource_summary& one : all) {
    list.push_back({{"name", one.name}, {"holders", one.holders}, {"waiters", one.waiters}});
    if (one.blocked_for) list.back()["blocked_ms"] = milliseconds(one.blocked_for);
    if (cannot_be_read(one)) list.back()["damaged"] = true;
  }
  return list;
}

value of(const std::vector<spi::check>& all) {
  value list = value::array();
  for (const spi::check& one : all) {
    list.push_back({{"check", one.name},
                    {"status", name_of(one.state)},
                    {"detail", one.detail},
                    {"remedy", one.remedy}});
  }
  return list;
}

value of(const spi::store_event& event, wall_time at) {
  return {{"at", rfc3339(at)},       {"event", name_of(event.kind)}, {"name", event.name},
          {"claim", event.claim},    {"mode", name_of(event.mode)},  {"fence", fence(event.fence)},
          {"payload", event.payload}};
}

}  // namespace json

}  // namespace holdfast::cli
