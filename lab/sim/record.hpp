// One line of a world's history, dated in true time. Checkers see nothing but these.
#pragma once

#include "sim/node_clock.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <string>

namespace holdfast::sim {

enum class what : std::uint8_t {
  // A caller and the answers it gets.
  acquire_invoked,  // number: 1 if it waits, 0 for a try
  acquire_granted,  // hold, claim, fence; until: ttl; number: 1 if it is renewed
  acquire_failed,   // number: errc
  cancel_invoked,
  validity_began,  // hold.valid() turned true; number: 1 if no guarantee stands behind it
  validity_ended,  // hold.valid() turned false; until: when its validity ended or would have
  lost_told,       // number: 1 if the hold had not run out by its own clock
  release_invoked,
  release_answered,  // number: 0 or errc
  change_invoked,    // mode: the one asked for
  change_answered,   // mode, fence, number: 0 or errc
  reentered,         // fence
  // The store of a client.
  attempt_sent,  // until: the claim's ttl
  renewal_sent,
  leave_sent,
  attempt_answered,  // number: see answer
  renewal_answered,  // number: hold_state
  left,              // number: departure
  // The server.
  executed_attempt,  // number: see answer
  executed_renewal,
  server_queued,
  server_granted,    // fence; until; offer; number: fences reserved
  server_prolonged,  // until
  server_changed,    // the mode of a hold; fence, until, number as with a grant
  server_left,       // number: departure
  server_forgot,     // the claim ended otherwise: lapsed or taken away
  state_lost,
  clock_jumped,
  // A latch.
  latch_set,   // number: count
  latch_down,  // a caller requested one count-down, under a new id
  latch_told,  // a wait returned
  latch_read,  // number: count
  // Machines and troubles.
  paused,
  resumed,
  killed,
  closed,
  unreachable,  // the server learned that pushes do not arrive
  reachable,
  trouble_began,  // number: kind
  trouble_ended,
  healed,
  // What only real processes do: see lab/torture.
  started,
  ended,           // number: exit status, or 1000 + signal
  write_accepted,  // by a resource that checks fences; number: 1 if valid before and after
  write_refused,
  left_behind,  // on the server, after every client has ended; number: claims
  // A lease that moves.
  detach_invoked,
  detach_answered,  // number: 0 or errc
  adopt_invoked,
  adopt_granted,  // as acquire_granted
  adopt_failed,   // number: errc
};

// The number of attempt_answered and executed_attempt.
enum class answer : std::uint8_t { granted, queued, turned_away, refused, unanswered };

std::string_view to_string(what kind) noexcept;

inline constexpr std::int32_t nobody = -1;

struct record {
  moment at{};
  what kind{};
  spi::mode mode = spi::mode::exclusive;
  bool fair = false;
  bool offer = false;  // pushed, and not accepted yet
  std::uint32_t permits = 1;
  std::int32_t process = nobody;
  std::int32_t resource = nobody;
  std::int32_t acquisition = nobody;
  std::int32_t claim = nobody;
  std::int32_t hold = nobody;
  std::uint64_t fence = 0;
  std::int64_t number = 0;
  moment until{};         // true time, or how long
  duration lock_delay{};  // nobody is let in for this long after an abnormal end
};

// One line of the timeline.
std::string describe(const record& line);

}  // namespace holdfast::sim
