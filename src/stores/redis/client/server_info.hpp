// Who answers: version, role, mode and identity of a server, from its own words.
#pragma once

#include "stores/redis/client/reply.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

struct server_version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // "7.0.15"; what is missing or no number is 0.
  static server_version parse(std::string_view text) noexcept;
  [[nodiscard]] std::string text() const;

  friend auto operator<=>(const server_version&, const server_version&) = default;
};

inline constexpr server_version oldest_version{6, 2, 0};
inline constexpr server_version first_with_functions{7, 0, 0};

struct server_info {
  enum class role : std::uint8_t { unknown, master, replica, sentinel };

  server_version version;
  role part = role::unknown;
  std::string mode;    // standalone, cluster, sentinel
  std::string run_id;  // changes with every start; empty where INFO is not allowed

  // From the answers of ROLE, INFO server and HELLO. What is not in them stays as it is.
  void take_role(const reply& answer);
  void take_info(const reply& answer);
  void take_hello(const reply& answer);
};

}  // namespace holdfast::redis
