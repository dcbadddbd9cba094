// One command on its way to the node that has its lane, wherever that is when it arrives.
#pragma once

#include "net/patience.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/client/script.hpp"
#include "stores/redis/layout.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <string>

namespace holdfast::redis {

struct errand {
  command what;
  const script* runs = nullptr;  // or null: a plain command
  lane where = 0;
  std::uint64_t number = 0;  // in the order of the calls
  net::patience until{};
  spi::completion<reply> done;
  std::uint32_t tries = 0;
  bool asking = false;  // sent this one time to another node, behind ASKING
  std::string from;     // the host that was asked last: MOVED may leave it out
  std::string refusal;  // what it was last answered with
};

}  // namespace holdfast::redis
