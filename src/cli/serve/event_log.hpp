// What happened at the engines, for streams, timelines, charts and counters. Memory is bounded,
// however much happens.
#pragma once

#include "cli/inspection.hpp"

#include <holdfast/spi/store.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::cli::serve {

inline constexpr std::size_t event_kinds = 7;
// How many events a stream may lag behind before it is told that it missed some.
inline constexpr std::size_t most_recent_events = 4096;
// How many events are kept for the timelines: of one name, and of all.
inline constexpr std::size_t most_past_of_a_name = 50;
inline constexpr std::size_t most_past = 40'000;
// The charts: a count per second.
inline constexpr std::size_t most_seconds = 180;

// Something that happened to a name, without the name.
struct past_event {
  wall_time at;
  spi::event_kind kind{};
  spi::mode mode{};
  std::string claim;
  std::optional<fence_token> fence;
  std::string payload;
};

// Counts of one second, or of all.
using event_counts = std::array<std::uint64_t, event_kinds>;

// Thread-safe.
class event_log {
 public:
  explicit event_log(std::vector<std::string> engines);

  void note(std::size_t engine, const spi::store_event& event);

  struct filter {
    std::optional<std::size_t> engine{};
    std::string name{};  // empty: all
  };
  struct batch {
    std::string text;          // messages of text/event-stream
    std::uint64_t last = 0;    // the number to go on from
    std::uint64_t missed = 0;  // they are no longer here
  };
  // The events after the number; waits for them, no longer than `within`.
  [[nodiscard]] batch after(std::uint64_t number, const filter& only, duration within) const;
  [[nodiscard]] std::uint64_t last() const;

  [[nodiscard]] std::vector<past_event> past_of(std::size_t engine, const std::string& name) const;
  // The grant of its present holder, if it was seen.
  [[nodiscard]] std::optional<past_event> last_grant(std::size_t engine,
                                                     const std::string& name) const;
  [[nodiscard]] event_counts counts(std::size_t engine) const;
  // The last seconds, the oldest first, without the present one.
  [[nodiscard]] std::vector<event_counts> seconds(std::size_t engine) const;
  // The number of the present second: a stream sends what it has not sent yet.
  [[nodiscard]] static std::int64_t this_second();
  [[nodiscard]] std::uint64_t kept() const;

  // Ends all waits, now and later.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  struct recent {
    std::size_t engine = 0;
    std::string name;
    std::string text;
  };
  struct history {
    std::deque<past_event> events;
    std::list<std::string>::iterator place;
  };
  struct tally {
    event_counts all{};
    std::array<event_counts, most_seconds> by_second{};
    std::int64_t second = 0;  // the last one that is in by_second
  };

  static std::string key_of(std::size_t engine, const std::string& name) {
    return std::to_string(engine) + "/" + name;
  }
  void remember(std::size_t engine, const spi::store_event& event, wall_time at);
  static void advance(tally& tally, std::int64_t second);

  const std::vector<std::string> engines_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // All below are guarded by mutex_.
  std::deque<recent> recent_;
  std::uint64_t last_ = 0;                         // the number of recent_.back()
  std::unordered_map<std::string, history> past_;  // by key_of()
  std::list<std::string> touched_;                 // its keys, the least recently touched first
  std::size_t past_events_ = 0;
  mutable std::vector<tally> tallies_;
  bool closed_ = false;
};

}  // namespace holdfast::cli::serve
