// The store: one per engine. Keeps claims and answers atomically, on the server, by the server's
// clock: granted now, or blocked by what? Five grant rules times M stores, instead of N primitives
// times M engines. Waiting, renewal, loss, retries and clean-up are written once, in core/.
//
// Rules for authors of a store:
//  1. Arguments are valid until the call returns; copy what you keep.
//  2. A completion is called exactly once, by the context's deadline (see useful_until), possibly
//     before the call returns, on any thread, never under a lock of yours.
//  3. Every verb is idempotent by the claim's id. A renewal never creates a claim; a late duplicate
//     never revives one that was left (see op_context::unanswered).
//  4. No answer is errc::unavailable: unknown, neither success nor loss; with error::unsent nothing
//     was sent, and this call has left nothing of the claim at the engine. Every other code is a
//     definite answer of the engine: this request changed nothing. not_sent, to an attempt only:
//     the engine is known not to answer, so it was not asked; the requester gets unavailable at
//     once.
//  5. wakeup calls may be spurious, may come before the attempt's own answer, and may be lost: the
//     core re-checks. They are made under no lock.
//  6. leave() with a deadline that has passed: nothing is sent. The engine never learned of the
//     claim; the store forgets it.
//  7. Verbs of one claim that were called one after the other are executed in that order, unless
//     the first was answered with unavailable.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/inspection.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/function.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast::spi {

// Between a store and the core, see rule 4; no user ever sees it.
inline constexpr errc not_sent = static_cast<errc>(-1);

// The server's clock, of which only differences mean anything to a client.
struct server_clock {
  using duration = holdfast::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<server_clock, duration>;
  static constexpr bool is_steady = false;
};
using server_time = server_clock::time_point;

struct granted {
  fence_token fence;
  duration ttl{};         // from this answer or push on; `forever`: does not end by time
  server_time at{};       // the server's clock when it decided
  bool offer = false;     // pushed: ttl is only the offer, a renewal makes it the full lease
  bool wanted = false;    // another claim waits for the resource
  bool degraded = false;  // granted by the local fallback, not by the engine
  // Of a quorum's member, for a claim with a proposed fence:
  duration counts_after{};   // it recently lost its state: its vote counts only after this
  std::uint64_t server = 0;  // which server this is, to find one that is listed twice; 0: unknown
};

struct blocked {
  bool queued = false;       // the claim has a place in the server's queue, and pushes come for it
  duration recheck_after{};  // when could asking again help, if no push comes?
  server_time at{};
  std::string blocker;  // payload of a claim that is in the way, for people; may be empty
};

using outcome = std::variant<granted, blocked>;

enum class hold_state : std::uint8_t {
  renewed,  // held; ttl starts again
  held,     // held, not prolonged: a lease that is not renewed, or one that was revoked
  waiting,  // still queued, its place kept
  lost,     // neither held nor queued
  unknown,  // no answer for this claim
};

struct renewal {
  hold_state state = hold_state::unknown;
  granted grant;             // with renewed and held
  duration recheck_after{};  // with waiting
  server_time at{};
  std::string why{};        // with unknown: the reason, as far as it is known, for people
  bool from_engine = true;  // false: from an earlier proof, the engine was not asked now
};

enum class departure : std::uint8_t { was_waiting, was_holder, gone };

enum class armed : std::uint8_t {
  no_gap,   // nothing can have been missed between the attempt and now
  recheck,  // ask once more
};

// How the engine reaches a claim that waits or holds. Thread-safe.
class wakeup {
 public:
  virtual ~wakeup() = default;
  // With a grant: it is yours (direct hand-off). Without: ask again, it may be free.
  virtual void notify(std::optional<granted> grant) noexcept = 0;
  // Somebody waits for what this claim holds.
  virtual void wanted() noexcept = 0;
  // The engine took it away: forced release, session expired, no further renewal.
  virtual void gone(const error& why) noexcept = 0;
};

struct op_context {
  time_point deadline{};  // answer by then, with unavailable if need be
  // If later than the deadline: an answer is still of use until then. A store whose engine is at
  // work, since it has answered other requests after this one was sent, may wait that long instead.
  time_point useful_until{};
  // Some request of this claim was never answered and may still arrive: leave() keeps a tombstone.
  bool unanswered = false;
  // Nobody waits for the answer, but somebody waits for the call to return: leave() does not block.
  bool in_passing = false;
  // If there is no connection: max waits for one until the deadline. Otherwise the first attempt to
  // connect that fails is the answer (unavailable, unsent), and so is a server that has said
  // nothing by then.
  time_point reach_by = time_point::max();
  // Connects now, even if a pause after a failure is not over. For calls that somebody waits for.
  bool at_once = false;
};

template <class T>
using completion = function<void(result<T>)>;

// These are visible to users too, under their names in the public headers.
using caps = capabilities;
using holder = holdfast::holder;
using waiting = waiter;
using resource_state = holdfast::resource_state;
using resource_summary = holdfast::resource_summary;
using revocation = holdfast::revocation;
using event_kind = lock_event_kind;
using store_event = lock_event;
using subscription = holdfast::subscription;
using check = health_check;

struct latch_change {
  enum class kind : std::uint8_t { set, down };
  kind what = kind::down;
  std::uint32_t count = 1;
  claim_id id;      // counts once, however often it is sent
  duration life{};  // how long the latch lives after its last change
};

struct latch_state {
  std::optional<std::uint32_t> count;  // none: unset
};

// Whether the engine answers, as reported by a store that monitors it.
enum class reach : std::uint8_t { lost, back };
using reach_sink = function<void(reach now, const error& why)>;

// Called when the latch changes; may be spurious.
using latch_watch = function<void()>;

// The stores repeat these declarations word for word: the compiler checks them against these, and a
// macro would hide what a reader looks for.
class store {
 public:
  virtual ~store() = default;

  [[nodiscard]] virtual const spi::caps& caps() const noexcept = 0;

  // Places the claim if it is new; otherwise answers where it stands. The wakeup is registered
  // before anything is sent, and stays until leave() is answered or the claim's `queued` is false
  // and the answer was blocked.
  virtual void attempt(claim_ptr claim, std::shared_ptr<wakeup> wakeup, const op_context& context,
                       completion<outcome> done) = 0;
  // Only called after a blocked answer with queued == false, where caps().pushes.
  virtual void watch(claim_ptr claim, const blocked& seen, const op_context& context,
                     completion<armed> done) = 0;
  // Release and withdrawal: one verb, since a waiter may have become the holder meanwhile.
  virtual void leave(claim_ptr claim, const op_context& context, completion<departure> done) = 0;
  // Prolongs holds, keeps places in the queue, and finds grants whose push was lost. One answer per
  // claim, in order.
  virtual void renew(std::vector<claim_ptr> claims, const op_context& context,
                     completion<std::vector<renewal>> done) = 0;
  // A downgrade keeps the hold and lets no writer in between; an upgrade succeeds for the sole
  // reader only, else would_deadlock. Answers with a new fence. When replayed: the same answer
  // again.
  virtual void change(claim_ptr claim, mode to, const op_context& context,
                      completion<granted> done) = 0;

  // Gives a hold to another claim of the resource, in one atomic step: where `from` holds, `to` holds
  // instead, with the same fence, mode, permits and lock delay, for to->ttl from the engine's now on. Nobody
  // else is let in. Where `to` already holds, it is prolonged; when replayed: the same answer
  // again. Where both are the same, a detached claim is prolonged. Never creates: not_held, and
  // nothing was changed, where neither holds, the hold was revoked, or `to` has a tombstone. `from`
  // gets one with op_context::unanswered. The wakeup is that of `to`, as with attempt(); null if
  // `to` is detached.
  virtual void transfer(const claim_id& from, claim_ptr to, std::shared_ptr<wakeup> wakeup,
                        const op_context& context, completion<granted> done);

  // For a member of a quorum, one atomic step: only where the claim still holds, its hold is
  // prolonged as by a renewal and no later fence of the resource is below fence + fence_block.
  // lost: it does not hold here, and nothing was written.
  virtual void raise(claim_ptr claim, fence_token fence, const op_context& context,
                     completion<granted> done);

  virtual void inspect(const resource_id& resource, const op_context& context,
                       completion<resource_state> done) = 0;
  virtual void list(const std::string& space, const std::string& prefix, const op_context& context,
                    completion<std::vector<resource_summary>> done) = 0;
  // Answers with the holders that were removed; empty if nobody held. `claim`: a public id, or
  // empty for all.
  virtual void revoke(const resource_id& resource, revocation how, const std::string& claim,
                      const op_context& context, completion<std::vector<holder>> done) = 0;
  // Events of one name, or of all in the namespace where resource.name is empty.
  virtual result<std::unique_ptr<subscription>> observe(
      const resource_id& resource, function<void(const store_event&)> sink) = 0;

  virtual void change_latch(const resource_id& resource, const latch_change& change,
                            const op_context& context, completion<latch_state> done) = 0;
  virtual void read_latch(const resource_id& resource, const op_context& context,
                          completion<latch_state> done) = 0;
  // Registered when it returns: watch first, then read, and nothing is missed.
  virtual result<std::unique_ptr<subscription>> watch_latch(const resource_id& resource,
                                                            latch_watch on_change) = 0;

  // Settings and health, for `doctor`.
  virtual void probe(const op_context& context, completion<std::vector<check>> done) = 0;

  // For a process that runs another under its locks: a descriptor that the other inherits, so that
  // the holds live on while it runs even if we are killed. A new one, close-on-exec, which the
  // caller closes. -1: this engine has no such thing.
  [[nodiscard]] virtual int life_descriptor() const noexcept { return -1; }

  // Sets who is notified when the engine stops answering and when it answers again; once, before
  // any verb. False: this store does not monitor it, and the core goes by the answers that it gets.
  virtual bool report_to(reach_sink) { return false; }

  // After close() every pending completion has been called (unavailable) and no wakeup comes.
  virtual void close() noexcept = 0;
};

inline void store::raise(claim_ptr, fence_token, const op_context&, completion<granted> done) {
  done(failure(errc::unsupported, caps().engine + " cannot be a member of a quorum"));
}

inline void store::transfer(const claim_id&, claim_ptr, std::shared_ptr<wakeup>, const op_context&,
                            completion<granted> done) {
  done(failure(errc::unsupported, caps().engine + " cannot hand a lease to another process"));
}

}  // namespace holdfast::spi
