// The data of a claim's node (ZooKeeper) or key (etcd). For a lock: who, as text, and nothing
// else, since other clients show it as it is. For a semaphore: who, and on a second line how
// many permits of how many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::stores {

struct permits_data {
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
};

std::string data_of(const std::string& payload, const permits_data& terms);
// The first line, sanitized: others write there too.
std::string payload_in(std::string_view data);
// Nothing if another client made it.
std::optional<permits_data> permits_in(std::string_view data);

}  // namespace holdfast::stores
