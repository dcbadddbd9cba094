// The documents of json.hpp as values, for documents that contain them.
#pragma once

#include "cli/json.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace holdfast::cli::json {

using value = nlohmann::ordered_json;

value holders_value(const std::vector<spi::holder>& all, wall_time now);
value resource_value(const std::string& name, const spi::resource_state& state, wall_time now);
value checks_value(const std::vector<spi::check>& all);
value event_value(const spi::store_event& event, wall_time at);

// One line. Payloads were written by others: what is not UTF-8 is replaced, not refused.
std::string line(const value& document);

}  // namespace holdfast::cli::json
