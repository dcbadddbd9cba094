// The verbs of claims, what operators see and do, and latches.
#include "stores/redis/native_store.hpp"

#include "stores/redis/client/reply.hpp"
#include "stores/redis/doctor.hpp"
#include "stores/redis/wire.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace holdfast::redis {

namespace {

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "redis";
  caps.supports_detach = true;
  return caps;
}

// This many claims are renewed by one script: each takes the server a few microseconds.
constexpr std::size_t renewals_at_once = 64;

}  // namespace

template <class Finish>
void native_store::ask_for(const place& where, const script& what,
                           std::span<const std::string_view> arguments, const char* verb,
                           const net::patience& until, Finish finish) {
  const std::array<std::string_view, 2> keys{where.state, observed_key(where.partition)};
  const time_point sent = runtime_->now();
  topology_->run(where.partition, what, keys, arguments, until,
                 [self = shared_from_this(), verb, sent, at = where.partition,
                  finish = std::move(finish)](result<reply> answer) mutable {
                   if (!answer) return finish(tl::unexpected(std::move(answer.error())));
                   if (answer->is_error()) {
                     return finish(tl::unexpected(self->refused(*answer, verb, at)));
                   }
                   const auto found = answer_of(*answer);
                   if (found && found->dated()) {
                     self->times_.learn(sent, self->runtime_->now(), found->at);
                   }
                   finish(found);
                 });
}

template <class T, class Read>
void native_store::ask(const place& where, const script& what,
                       std::span<const std::string_view> arguments, const char* verb,
                       const net::patience& until, spi::completion<T> done, Read read) {
  ask_for(
      where, what, arguments, verb, until,
      [done = std::move(done), read = std::move(read)](const result<script_answer>& found) mutable {
        if (!found) return done(tl::unexpected(found.error()));
        done(read(*found));
      });
}

native_store::native_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
                           const settings& how)
    : runtime_(std::move(runtime)),
      topology_(std::move(servers)),
      scripts_(scripts::make(topology_->flavour())),
      sender_{new_process_name(*runtime_), how.offer},
      caps_(capabilities()),
      board_(std::make_shared<switchboard>(runtime_, topology_, sender_.process, how.pushes)),
      feed_(std::make_shared<event_feed>(runtime_, topology_)) {}

native_store::~native_store() {
  if (!runtime_->forked()) close();
}

void native_store::close() noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  board_->close();
  topology_->close();
}

error native_store::refused(const reply& answer, const char* verb, partition at) const {
  return to_error(answer, verb, topology_->where(at), {"~holdfast:*", "&holdfast:*"});
}

std::string native_store::why_not(const result<reply>& answer, const char* verb,
                                  partition at) const {
  if (!answer) return answer.error().detail;
  return answer->is_error() ? refused(*answer, verb, at).detail : "an answer of another version";
}

void native_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  const place where = place_of(claim->resource);
  // A claim that queues must be reachable, or its turn would be skipped. Until then it only tries,
  // at the same time: usually the lock is free.
  const bool reachable =
      board_->connect(where.partition, claim->id, std::move(wakeup)) || !claim->queued;
  send_attempt(where, claim, reachable ? queueing::allowed : queueing::forbidden, context,
               std::move(done));
}

void native_store::send_attempt(const place& where, const spi::claim_ptr& claim, queueing how,
                                const net::patience& until, spi::completion<spi::outcome> done) {
  const std::string bytes = claim_bytes(*claim, sender_, how, times_.latest(until.deadline));
  const std::array<std::string_view, 2> arguments{bytes, where.written};
  ask_for(
      where, scripts_->attempt, std::span(arguments).first(where.written.empty() ? 1 : 2),
      "attempt", until,
      [self = shared_from_this(), claim, how, until, at = where.partition,
       done = std::move(done)](const result<script_answer>& found) mutable {
        auto answer = found ? outcome_of(*found, *claim)
                            : result<spi::outcome>(tl::unexpected(found.error()));
        const bool unknown =
            !answer && (answer.error() == errc::unavailable || answer.error() == errc::lost);
        const bool repeated = found && found->repeated;
        if (repeated || (unknown && !answer.error().unsent)) {
          self->board_->attempt_lost(at, claim->id);
        }
        const auto* blocked = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
        if (blocked != nullptr && claim->queued && how == queueing::forbidden && !blocked->queued) {
          return self->queue_when_open(claim, until, *blocked, std::move(done));
        }
        const bool turned_away = blocked != nullptr && !claim->queued;
        const bool over = turned_away || (!answer && !unknown);
        if (over && repeated) {
          // Nobody else will: only to have the other copy refused.
          self->leave(claim, {.deadline = until.deadline}, [](const result<spi::departure>&) {});
        } else if (over) {
          self->board_->disconnect(at, claim->id);
        }
        done(std::move(answer));
      });
}

void native_store::queue_when_open(const spi::claim_ptr& claim, const net::patience& until,
                                   const spi::blocked& held, spi::completion<spi::outcome> done) {
  const partition where = partition_of(claim->resource);
  board_->when_open(where, until.first_end(),
                    [self = shared_from_this(), claim, where, until, held,
                     done = std::move(done)](const result<void>& open) mutable {
                      // Its caller's time is up: the server has answered, after all.
                      const bool over = until.reach_by < until.deadline;
                      if (!open && over && open.error() == errc::unavailable) return done(held);
                      if (!open) return done(tl::unexpected(open.error()));
                      if (!self->board_->connected(where, claim->id)) {
                        return done(failure(errc::unavailable, "left before it was in line"));
                      }
                      self->send_attempt(place_of(claim->resource), claim, queueing::allowed, until,
                                         std::move(done));
                    });
}

// No waiter is turned away here, so there is nothing to watch.
void native_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void native_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  const place where = place_of(claim->resource);
  const char* remember = claim->lock_delay > duration{0} ? "0" : "";
  // Its only request may still be on its way; but if the claim is there, it has arrived.
  if (context.unanswered || board_->may_come_late(where.partition, claim->id)) {
    remember = board_->only_attempt(where.partition, claim->id) ? "2" : "1";
  }
  board_->disconnect(where.partition, claim->id);
  const std::string bytes = leaving_bytes(*claim, sender_);
  const std::array<std::string_view, 3> arguments{bytes, remember, where.written};
  const bool in_full = *remember != '\0' || !where.written.empty();
  ask<spi::departure>(where, scripts_->leave, std::span(arguments).first(in_full ? 3 : 1), "leave",
                      context, std::move(done),
                      [](const script_answer& from) -> result<spi::departure> {
                        // A foreign value: whatever we had there is gone.
                        if (from.kind < 0) return spi::departure::gone;
                        return static_cast<spi::departure>(from.kind);
                      });
}

void native_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  auto all = std::make_shared<renewing>(claims.size(), std::move(done));
  std::array<std::vector<std::size_t>, partition_count> by_partition;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    by_partition[partition_of(claims[i]->resource)].push_back(i);
  }
  for (std::size_t which = 0; which < partition_count; ++which) {
    const auto& all_here = by_partition[which];
    for (std::size_t from = 0; from < all_here.size(); from += renewals_at_once) {
      const std::size_t count = std::min(renewals_at_once, all_here.size() - from);
      std::vector<std::size_t> part(all_here.begin() + static_cast<std::ptrdiff_t>(from),
                                    all_here.begin() + static_cast<std::ptrdiff_t>(from + count));
      std::vector<std::string> kept;
      kept.reserve(2 * count + 1);
      for (const std::size_t i : part) kept.push_back(place_of(claims[i]->resource).state);
      kept.push_back(observed_key(static_cast<partition>(which)));
      for (const std::size_t i : part) {
        kept.push_back(claim_bytes(*claims[i], sender_, queueing::allowed, std::nullopt));
      }
      std::vector<spi::claim_id> ids;
      ids.reserve(count);
      for (const std::size_t i : part) ids.push_back(claims[i]->id);
      const fields words(kept.begin(), kept.end());
      const std::span all_words(words);
      const time_point sent = runtime_->now();
      all->missing.fetch_add(1, std::memory_order_relaxed);
      topology_->run(static_cast<partition>(which), scripts_->renew, all_words.first(count + 1),
                     all_words.subspan(count + 1), context.deadline,
                     [self = shared_from_this(), all, part = std::move(part), ids = std::move(ids),
                      here = static_cast<partition>(which), sent](const result<reply>& answer) {
                       if (answer && answer->elements.size() > part.size()) {
                         const auto at = to_server_time(answer->elements[0].integer);
                         self->times_.learn(sent, self->runtime_->now(), at);
                         for (std::size_t i = 0; i < part.size(); ++i) {
                           auto& told = all->answers[part[i]];
                           told = renewal_of(answer->elements[1 + i], at);
                           if (told.state == spi::hold_state::lost) {
                             self->board_->claim_over(here, ids[i]);
                           }
                         }
                       } else {
                         const std::string why = self->why_not(answer, "renew", here);
                         for (const std::size_t i : part) all->answers[i].why = why;
                       }
                       all->arrived();
                     });
    }
  }
  all->arrived();
}

void native_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  const place where = place_of(claim->resource);
  const std::string bytes = claim_bytes(*claim, sender_, queueing::allowed, std::nullopt);
  const std::string mode = std::to_string(static_cast<int>(to));
  ask<spi::granted>(where, scripts_->change, fields{bytes, mode}, "change", context,
                    std::move(done), [claim](const script_answer& from) -> result<spi::granted> {
                      if (from.kind < 0) return tl::unexpected(refusal_of(from, claim.get()));
                      return granted_of(from, 2);
                    });
}

namespace {

std::string_view text_of(const spi::claim_id& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

struct seen {
  std::vector<stored_holder> holders;
  std::vector<spi::waiting> waiters;
  std::optional<duration> blocked_for;
};

result<seen> seen_of(const script_answer& from) {
  if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
  if (from.fields->size() < 5) return failure(errc::unavailable, "unexpected reply");
  seen found;
  for (const reply& each : (*from.fields)[2].elements) {
    if (auto holder = holder_of(each.words(), from.at)) found.holders.push_back(*std::move(holder));
  }
  std::ranges::sort(found.holders, {}, [](const stored_holder& one) { return one.shown.fence; });
  for (const reply& each : (*from.fields)[3].elements) {
    if (auto waiter = waiter_of(each.words(), from.at)) found.waiters.push_back(*std::move(waiter));
  }
  found.blocked_for = blocked_of(from.number(4));
  return found;
}

}  // namespace

// A lost answer is requested again, so `to` stays connected until it is left.
void native_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                            std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  const place where = place_of(to->resource);
  const bool connected = wakeup != nullptr;
  if (connected) board_->connect(where.partition, to->id, std::move(wakeup));
  const std::string bytes = claim_bytes(*to, sender_, queueing::forbidden, std::nullopt);
  const bool late = context.unanswered || board_->may_come_late(where.partition, from);
  ask_for(where, scripts_->transfer, fields{bytes, text_of(from), late ? "1" : "0"}, "transfer",
          context,
          [self = shared_from_this(), at = where.partition, from, to, connected,
           done = std::move(done)](const result<script_answer>& found) mutable {
            auto answer =
                found ? (found->kind < 0
                             ? result<spi::granted>(tl::unexpected(refusal_of(*found, to.get())))
                             : result<spi::granted>(granted_of(*found, 2)))
                      : result<spi::granted>(tl::unexpected(found.error()));
            const bool unknown = !answer && answer.error() == errc::unavailable;
            if (unknown && !answer.error().unsent) self->board_->attempt_lost(at, to->id);
            if (!unknown && from != to->id) self->board_->disconnect(at, from);
            if (connected && !answer && !unknown) self->board_->disconnect(at, to->id);
            done(std::move(answer));
          });
}

void native_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  ask<spi::resource_state>(place_of(resource), scripts_->inspect, {}, "inspect", context,
                           std::move(done),
                           [](const script_answer& from) -> result<spi::resource_state> {
                             auto found = seen_of(from);
                             if (!found) return tl::unexpected(std::move(found.error()));
                             spi::resource_state state;
                             for (stored_holder& one : found->holders) {
                               state.holders.push_back(std::move(one.shown));
                             }
                             state.waiters = std::move(found->waiters);
                             state.blocked_for = found->blocked_for;
                             return state;
                           });
}

void native_store::list(const std::string& space, const std::string& prefix,
                        const spi::op_context& context,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  list_names(topology_, scripts_, runtime_, {space, prefix}, context, std::move(done));
}

// The server knows claims by their ids, people know them by a hash: first look up the id.
void native_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  const place where = place_of(resource);
  if (claim.empty()) return send_revoke(where, how, {}, context, std::move(done));
  ask<std::vector<spi::claim_id>>(
      where, scripts_->inspect, {}, "inspect", context,
      [self = shared_from_this(), where, how, until = net::patience(context),
       done = std::move(done)](result<std::vector<spi::claim_id>> those) mutable {
        if (!those) return done(tl::unexpected(std::move(those.error())));
        if (those->empty()) return done(std::vector<spi::holder>{});
        self->send_revoke(where, how, *those, until, std::move(done));
      },
      [claim](const script_answer& from) -> result<std::vector<spi::claim_id>> {
        const auto found = seen_of(from);
        if (!found) return tl::unexpected(found.error());
        std::vector<spi::claim_id> those;
        for (const stored_holder& one : found->holders) {
          if (one.shown.claim == claim) those.push_back(one.id);
        }
        return those;
      });
}

void native_store::send_revoke(const place& where, spi::revocation how,
                               const std::vector<spi::claim_id>& those, const net::patience& until,
                               spi::completion<std::vector<spi::holder>> done) {
  fields words{how == spi::revocation::force ? "1" : "0"};
  for (const spi::claim_id& id : those) words.push_back(text_of(id));
  ask<std::vector<spi::holder>>(where, scripts_->revoke, words, "revoke", until, std::move(done),
                                [](const script_answer& from) -> result<std::vector<spi::holder>> {
                                  if (from.kind < 0) {
                                    return tl::unexpected(refusal_of(from, nullptr));
                                  }
                                  std::vector<spi::holder> taken;
                                  for (std::size_t i = 2; i < from.fields->size(); ++i) {
                                    auto one = holder_of(from.text(i), from.at);
                                    if (one) taken.push_back(std::move(one->shown));
                                  }
                                  return taken;
                                });
}

result<std::unique_ptr<spi::subscription>> native_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_.load(std::memory_order_acquire)) return failure(errc::cancelled, "redis: closed");
  return feed_->observe(resource, std::move(sink));
}

void native_store::send_latch(const spi::resource_id& resource, const script& what,
                              const fields& arguments, const char* verb, const net::patience& until,
                              spi::completion<spi::latch_state> done) {
  ask<spi::latch_state>(place_of(resource), what, arguments, verb, until, std::move(done),
                        [](const script_answer& from) -> result<spi::latch_state> {
                          if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
                          spi::latch_state state;
                          if (from.number(2) >= 0) {
                            state.count = static_cast<std::uint32_t>(from.number(2));
                          }
                          return state;
                        });
}

void native_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  constexpr std::uint32_t max_count = 1'000'000;
  constexpr duration default_life = std::chrono::hours(24);
  if (change.count == 0 || change.count > max_count) {
    return done(failure(errc::invalid, "a latch counts from 1 to " + std::to_string(max_count)));
  }
  const duration life = change.life > duration{0} ? change.life : default_life;
  const std::string count = std::to_string(change.count);
  const std::string micro = std::to_string(std::chrono::duration_cast<microseconds>(life).count());
  const bool set = change.what == spi::latch_change::kind::set;
  send_latch(resource, scripts_->latch,
             {set ? "s" : "d", count, text_of(change.id), micro, place_of(resource).written},
             set ? "latch set" : "latch down", context, std::move(done));
}

void native_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  send_latch(resource, scripts_->latch_count, {"r"}, "latch count", context, std::move(done));
}

result<std::unique_ptr<spi::subscription>> native_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (closed_.load(std::memory_order_acquire)) return failure(errc::cancelled, "redis: closed");
  return feed_->watch_latch(resource, std::move(on_change));
}

void native_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  doctor::start(runtime_, topology_, native_requirements({scripts_, &scripts_->version}), context,
                std::move(done));
}

}  // namespace holdfast::redis
