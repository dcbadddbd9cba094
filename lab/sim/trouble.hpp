// The troubles of a world. Each world has a random subset of the kinds (swarm testing): what one
// kind hides, a world without it shows.
#pragma once

#include "sim/node_clock.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::sim {

enum class trouble : std::uint8_t {
  delay,  // messages take a long time
  request_loss,
  reply_loss,
  black_hole,  // nothing arrives, either way
  stall,       // a connection is stuck; what was sent arrives late, up to minutes
  cut,         // a connection breaks; what was in flight is lost or executed, at once or late
  push_loss,
  push_disorder,  // pushes overtake each other
  subscription_cut,
  client_pause,
  client_kill,
  client_close,
  server_pause,
  server_restart,  // with its state
  server_wipe,     // without
  clock_jump,      // of the server
  clock_rates,     // clocks run fast or slow, by up to 0.9 % of each other
  cancel,          // callers change their mind, at every kind of moment
};
inline constexpr std::size_t trouble_kinds = static_cast<std::size_t>(trouble::cancel) + 1;

inline constexpr std::array<std::string_view, trouble_kinds> trouble_names{
    "delay",       "request-loss", "reply-loss",    "black-hole",       "stall",
    "cut",         "push-loss",    "push-disorder", "subscription-cut", "client-pause",
    "client-kill", "client-close", "server-pause",  "server-restart",   "server-wipe",
    "clock-jump",  "clock-rates",  "cancel"};

constexpr std::optional<trouble> trouble_named(std::string_view name) noexcept {
  for (std::size_t kind = 0; kind < trouble_kinds; ++kind) {
    if (trouble_names[kind] == name) return static_cast<trouble>(kind);
  }
  return std::nullopt;
}

class trouble_set {
 public:
  constexpr trouble_set() noexcept = default;
  static constexpr trouble_set all() noexcept { return trouble_set((1U << trouble_kinds) - 1); }

  [[nodiscard]] constexpr bool has(trouble kind) const noexcept { return (bits_ & bit(kind)) != 0; }
  constexpr void add(trouble kind) noexcept { bits_ |= bit(kind); }
  constexpr void drop(trouble kind) noexcept { bits_ &= ~bit(kind); }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  [[nodiscard]] constexpr trouble_set within(trouble_set allowed) const noexcept {
    return trouble_set(bits_ & allowed.bits_);
  }

 private:
  explicit constexpr trouble_set(std::uint32_t bits) noexcept : bits_(bits) {}
  static constexpr std::uint32_t bit(trouble kind) noexcept {
    return 1U << static_cast<std::uint32_t>(kind);
  }
  std::uint32_t bits_ = 0;
};

// One occurrence.
struct disturbance {
  trouble kind{};
  moment from{};
  moment to{};
  std::int32_t process = -1;  // all, if negative
  std::uint64_t detail = 0;   // random bits for the particulars
};

}  // namespace holdfast::sim
