// Learns of every message that a client sends or is about to receive: what may happen at any kind
// of moment happens here.
#pragma once

#include <cstdint>

namespace holdfast::sim {

class step_listener {
 public:
  virtual ~step_listener() = default;
  // `acquisition`: whose claim it is about, if that is known.
  virtual void stepped(std::int32_t process, std::int32_t acquisition) = 0;
};

}  // namespace holdfast::sim
