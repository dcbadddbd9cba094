// A command of a connection that is not answered yet.
#pragma once

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::redis {

class script;

struct pending {
  spi::completion<reply> done{};
  time_point deadline{};
  std::uint32_t replies = 1;       // still to come
  std::vector<reply> gathered{};   // of a command with several
  std::optional<command> kept{};   // where it may be sent later, or once more
  bool again = false;              // sent after a quiet time: may be sent once more
  bool in_full = false;            // to be sent once more, in full, if the server answers NOSCRIPT
  const script* runs = nullptr;    // or null
  std::vector<pending> members{};  // of a bundle, which has no completion of its own

  // What it counts for.
  [[nodiscard]] std::size_t size() const noexcept { return members.empty() ? 1 : members.size(); }
};

}  // namespace holdfast::redis
