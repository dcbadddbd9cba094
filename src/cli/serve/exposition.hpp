// What Prometheus reads: the engines as a whole, of all their clients. What one process does with its
// locks is holdfast::metrics' to tell.
#pragma once

#include "cli/serve/engine_view.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::cli::serve {

struct exposed_engine {
  std::string id;
  engine_status status;
  event_counts counts{};
};

struct exposed_server {
  std::size_t streams = 0;
  std::uint64_t missed = 0;
  std::uint64_t past_events = 0;
  std::map<int, std::uint64_t> answers;  // by status
};

std::string exposition(const std::vector<exposed_engine>& engines, const exposed_server& server);

}  // namespace holdfast::cli::serve
