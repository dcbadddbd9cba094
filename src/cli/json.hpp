// What --json prints. Keys are only ever added.
#pragma once

#include <holdfast/spi/store.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli::json {

using wall_time = std::chrono::system_clock::time_point;

// One document each, with a line end.
std::string resource(const std::string& name, const spi::resource_state& state, wall_time now);
std::string resources(const std::vector<spi::resource_summary>& all);
std::string checks(const std::vector<spi::check>& all);
std::string event(const spi::store_event& event, wall_time at);

}  // namespace holdfast::cli::json

namespace holdfast::cli {

// A name that is listed though nobody is there: the engine found it and could not read it.
inline bool cannot_be_read(const spi::resource_summary& one) noexcept {
  return one.holders == 0 && one.waiters == 0 && !one.blocked_for;
}

std::string_view name_of(spi::mode mode);
std::string_view name_of(spi::event_kind kind);
std::string_view name_of(spi::check::status status);

}  // namespace holdfast::cli
