// What clients tell each other through their sockets: one packet each, a fixed head and two texts.
// Described in docs/formats/embedded.md. A packet that is malformed, of a newer version or of an
// unknown kind is ignored: messages are hints, and whoever misses one looks again.
#pragma once

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sqlite {

struct message {
  enum class kind : std::uint16_t {
    hello = 1,    // first on a connection: `client` and `text` (its token) are who connected
    granted = 2,  // `claim` is yours now: `fence`, `ttl`, `at`, `wanted`
    freed = 3,    // `claim` should ask again
    wanted = 4,   // somebody waits for what `claim` holds
    gone = 5,     // `claim` was taken away: `text` says why; nobody else gets it for `ttl`
    event = 6,    // for an observer: `event`, `name`, `fence`, `mode`, `text` is the payload
    latch = 7,    // the latch `name` changed
  };
  static constexpr std::size_t max_size = 2048;

  kind what = kind::hello;
  std::int64_t client = 0;
  spi::claim_id claim;  // of an event: the public id's 16 characters
  std::uint64_t fence = 0;
  std::int64_t ttl = 0;
  std::int64_t at = 0;
  bool offer = false;
  bool wanted = false;
  bool fenced = false;  // an event that has a fence
  spi::mode mode = spi::mode::exclusive;
  spi::event_kind event = spi::event_kind::queued;
  std::string name;  // the resource's key
  std::string text;
};

std::string encode(const message& message);
std::optional<message> decode(std::string_view packet);

}  // namespace holdfast::sqlite
