// What show, ls, watch, doctor and serve report about an engine: as JSON, in which keys are only
// ever added, and as tables for people.
#pragma once

#include <holdfast/spi/store.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

using wall_time = std::chrono::system_clock::time_point;

std::string_view name_of(spi::mode mode);
std::string_view name_of(spi::event_kind kind);
std::string_view name_of(spi::check::status status);

// A name that is listed without holders or waiters: the engine found it but could not read it.
inline bool cannot_be_read(const spi::resource_summary& one) noexcept {
  return one.holders == 0 && one.waiters == 0 && !one.blocked_for;
}

// Empty if there are none.
std::string holder_table(const std::vector<spi::holder>& holders);
std::string waiter_table(const std::vector<spi::waiting>& waiters);

namespace json {

using value = nlohmann::ordered_json;

value of(const std::vector<spi::holder>& all);
value of(const std::string& name, const spi::resource_state& state);
value of(const std::vector<spi::resource_summary>& all);
value of(const std::vector<spi::check>& all);
value of(const spi::store_event& event, wall_time at);
value milliseconds(const std::optional<duration>& span);

// A document on one line. Payloads were written by others: what is not UTF-8 is replaced, not
// rejected.
std::string line(const value& document);

}  // namespace json

}  // namespace holdfast::cli
