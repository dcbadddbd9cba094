// Every limit of `holdfast serve`, so that its memory is bounded however much happens.
#pragma once

#include <holdfast/clock.hpp>

#include <cstddef>

namespace holdfast::cli::serve {

inline constexpr std::size_t most_engines = 16;
inline constexpr std::size_t most_connections = 64;
// Of these, event streams: the others are for requests that end.
inline constexpr std::size_t most_streams = 32;
// Events that a stream may lag behind before it is told that it missed some.
inline constexpr std::size_t most_recent_events = 4096;
// What is kept for the timelines: of one name, and of all.
inline constexpr std::size_t most_past_of_a_name = 50;
inline constexpr std::size_t most_past = 40'000;
// Names of one engine that are shown; all are counted.
inline constexpr std::size_t most_names = 20'000;
// Names that one request may ask about in detail, and how long that may take.
inline constexpr std::size_t most_details = 64;
inline constexpr duration details_within = std::chrono::seconds(3);
inline constexpr std::size_t most_kept_details = 1024;
inline constexpr duration details_are_fresh = std::chrono::milliseconds(500);
// The charts: a count per second.
inline constexpr std::size_t most_seconds = 180;

// An engine is listed while somebody looks, and at most a tenth of the time.
inline constexpr duration list_every = std::chrono::seconds(1);
inline constexpr int list_share = 10;
inline constexpr duration somebody_looks_for = std::chrono::seconds(10);
inline constexpr duration listing_within = std::chrono::seconds(6);
// Holders that nobody was told of (they were there before us) are asked for, so many in a round.
inline constexpr std::size_t most_unknown_asked = 25;
inline constexpr duration ping_every = std::chrono::seconds(2);
inline constexpr duration ping_within = std::chrono::seconds(3);
inline constexpr duration probe_every = std::chrono::seconds(60);
inline constexpr duration reopen_every = std::chrono::seconds(2);

inline constexpr std::size_t shortest_token = 16;
// A stream sends something at least this often, so that a client that has gone is noticed.
inline constexpr duration heartbeat_every = std::chrono::seconds(10);

}  // namespace holdfast::cli::serve
