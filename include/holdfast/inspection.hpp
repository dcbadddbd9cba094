// What the calls for operators return: who holds and who waits, what an engine can do, how healthy
// it is.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {

// The grant rules. "Others": granted claims; if either is fair, also claims that came before.
enum class lock_mode : std::uint8_t {
  exclusive,  // no others
  shared,     // no exclusive others
  permit,     // permits of others + mine <= max
};

// What an engine can do. A call that needs something else answers unsupported.
struct capabilities {
  std::string engine;   // "memory", "sqlite", "redis"
  bool expires = true;  // false: a hold lasts while its process lives, paused or not
  bool pushes = true;   // wake-ups come by themselves; else the core polls
  bool always_fair = false;
  bool fair = true;
  bool shared = true;
  bool permits = true;
  std::string why_no_permits{};      // for people, where permits is false; may be empty
  bool supports_mode_change = true;  // upgrade, downgrade
  bool latches = true;
  bool supports_listing = true;     // ls, and events for watch
  bool reports_holders = true;      // claim, fence and payload; no election without it
  bool reports_waiters = true;      // in the queue, and to the holder: lease.wanted()
  bool revokes = true;              // another's hold can be taken away
  bool supports_lock_delay = true;  // lock_delay
  bool supports_namespaces = true;
  bool supports_detach = false;        // a lease can be handed to another process
  bool supports_shared_detach = true;  // if so: also a lease of a shared_mutex
  bool excludes_processes = true;      // false: memory
  bool can_vote = false;               // may be a member of a quorum: proposed fences, raise()
};

struct holder {
  std::string claim;  // public id
  lock_mode mode = lock_mode::exclusive;
  std::uint32_t permits = 1;
  std::optional<fence_token> fence;   // none: a foreign holder
  std::optional<duration> remaining;  // none: does not end by time, or nobody can say when
  bool by_session = false;            // none, because it ends with a session of the engine
  std::optional<duration> held_for;
  std::string payload;
  // For people: its own process has ended, and this one, which inherited the hold, keeps it.
  std::string kept_by{};
};

struct waiter {
  std::string claim;
  lock_mode mode = lock_mode::exclusive;
  std::uint32_t permits = 1;
  std::optional<duration> waiting_for;
  std::string payload;
};

struct resource_state {
  std::vector<holder> holders;
  std::vector<waiter> waiters;  // in order
  // A hold with a lock delay ended abnormally: nobody is granted the lock for this long.
  std::optional<duration> blocked_for{};
};

struct resource_summary {
  std::string name;
  std::size_t holders = 0;
  std::size_t waiters = 0;
  std::optional<duration> blocked_for{};  // listed also if nobody holds it or waits for it
};

enum class revocation : std::uint8_t {
  force,  // frees at once; two may run until the holder learns
  safe,   // no further renewal; nobody else before the lease has ended
};

enum class lock_event_kind : std::uint8_t {
  queued,
  granted,
  renewed,
  released,
  expired,
  withdrawn,
  forced
};

// What happened to a name at the engine, by any client; an observer's event is about this client.
struct lock_event {
  lock_event_kind kind{};
  std::string name;
  std::string claim;
  lock_mode mode = lock_mode::exclusive;
  std::optional<fence_token> fence;
  std::string payload;
};

// Ends when it is destroyed; no call is made after that.
class subscription {
 public:
  virtual ~subscription() = default;
};

// One line of `holdfast doctor`.
struct health_check {
  enum class status : std::uint8_t { ok, warn, fail };
  std::string name;
  status state = status::ok;
  std::string detail;
  std::string remedy;
};

}  // namespace holdfast
