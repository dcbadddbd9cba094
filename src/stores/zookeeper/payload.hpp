// What a claim's node has as its data. Of a lock: who, as text, and nothing else, since Curator's
// readers show it as it is. Of a semaphore: who, and on a second line how many of how many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

// Written by Curator's Revoker, and by `revoke`: whoever holds is asked to give it back.
inline constexpr std::string_view revoke_message = "__REVOKE__";

struct permits_data {
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
};

std::string data_of(const std::string& payload, const permits_data& terms);
// The first line, made harmless: others write there too.
std::string payload_in(std::string_view data);
// Nothing if others made it.
std::optional<permits_data> permits_in(std::string_view data);

}  // namespace holdfast::zookeeper
