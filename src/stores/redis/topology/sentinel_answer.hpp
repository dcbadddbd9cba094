// What a sentinel says of a master, read without I/O.
#pragma once

#include "net/target.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

struct sentinel_answer {
  enum class kind : std::uint8_t { found, no_such_name, refused };

  kind what = kind::refused;
  net::target master;
  std::int64_t epoch = 0;  // of the configuration: grows with each failover, the same on all
  std::string refusal;
};

// Two questions in one burst: the address as it is in a failover too, and the epoch.
command sentinel_question(std::string_view name);
// The answer to both.
sentinel_answer read_sentinel(const reply& answer);
// "+switch-master": is it of this master?
bool switches(std::string_view payload, std::string_view name) noexcept;

}  // namespace holdfast::redis
