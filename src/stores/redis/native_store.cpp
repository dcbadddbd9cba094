// The verbs of claims. What people see and do is in native_overview.cpp.
#include "stores/redis/native_store.hpp"

#include "stores/redis/native_ask.hpp"
#include "stores/redis/renewing.hpp"

#include <array>
#include <span>
#include <utility>

namespace holdfast::redis {

namespace {

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "redis";
  return caps;
}

// Renewals of this many claims go in one script: each takes the server a few microseconds.
constexpr std::size_t renewals_at_once = 64;

}  // namespace

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

error native_store::refused(const reply& answer, const char* verb, lane at) const {
  return to_error(answer, verb, topology_->where(at), {"~holdfast:*", "&holdfast:*"});
}

std::string native_store::why_not(const result<reply>& answer, const char* verb, lane at) const {
  if (!answer) return answer.error().detail;
  return answer->is_error() ? refused(*answer, verb, at).detail : "an answer of another version";
}

void native_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  const place where = place_of(claim->resource);
  // Who queues must be reachable, or its turn would pass it by. Until then only tried, at the same
  // time: mostly it is free.
  const bool reachable =
      board_->connect(where.lane, claim->id, std::move(wakeup)) || !claim->queued;
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
      [self = shared_from_this(), claim, how, until, at = where.lane,
       done = std::move(done)](const result<script_answer>& found) mutable {
        auto answer = found ? outcome_of(*found, *claim)
                            : result<spi::outcome>(tl::unexpected(found.error()));
        const bool unknown =
            !answer && (answer.error() == errc::unavailable || answer.error() == errc::lost);
        if (unknown && !answer.error().unsent) self->board_->attempt_lost(at, claim->id);
        const auto* blocked = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
        if (blocked != nullptr && claim->queued && how == queueing::forbidden && !blocked->queued) {
          return self->queue_when_open(claim, until, std::move(done));
        }
        const bool turned_away = blocked != nullptr && !claim->queued;
        if (turned_away || (!answer && !unknown)) self->board_->disconnect(at, claim->id);
        done(std::move(answer));
      });
}

void native_store::queue_when_open(const spi::claim_ptr& claim, const net::patience& until,
                                   spi::completion<spi::outcome> done) {
  const lane where = lane_of(claim->resource);
  board_->when_open(where, until.deadline,
                    [self = shared_from_this(), claim, where, until,
                     done = std::move(done)](const result<void>& open) mutable {
                      if (!open) return done(tl::unexpected(open.error()));
                      if (!self->board_->connected(where, claim->id)) {
                        return done(failure(errc::unavailable, "left before it was in line"));
                      }
                      self->send_attempt(place_of(claim->resource), claim, queueing::allowed, until,
                                         std::move(done));
                    });
}

// Nobody who would wait is turned away here, so there is nothing to be watched.
void native_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void native_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  const place where = place_of(claim->resource);
  const char* remember = claim->lock_delay > duration{0} ? "0" : "";
  // Where its only request is on its way still, but the claim is there, it has arrived.
  if (context.unanswered) remember = board_->only_attempt(where.lane, claim->id) ? "2" : "1";
  board_->disconnect(where.lane, claim->id);
  const std::string bytes = leaving_bytes(*claim, sender_);
  const std::array<std::string_view, 3> arguments{bytes, remember, where.written};
  const bool in_full = *remember != '\0' || !where.written.empty();
  ask<spi::departure>(where, scripts_->leave, std::span(arguments).first(in_full ? 3 : 1), "leave",
                      context, std::move(done),
                      [](const script_answer& from) -> result<spi::departure> {
                        // A foreign value: whatever was there of ours is not any more.
                        if (from.kind < 0) return spi::departure::gone;
                        return static_cast<spi::departure>(from.kind);
                      });
}

void native_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  auto all = std::make_shared<renewing>(claims.size(), std::move(done));
  std::array<std::vector<std::size_t>, lane_count> by_lane;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    by_lane[lane_of(claims[i]->resource)].push_back(i);
  }
  for (std::size_t which = 0; which < lane_count; ++which) {
    const auto& all_here = by_lane[which];
    for (std::size_t from = 0; from < all_here.size(); from += renewals_at_once) {
      const std::size_t count = std::min(renewals_at_once, all_here.size() - from);
      std::vector<std::size_t> part(all_here.begin() + static_cast<std::ptrdiff_t>(from),
                                    all_here.begin() + static_cast<std::ptrdiff_t>(from + count));
      std::vector<std::string> kept;
      kept.reserve(2 * count + 1);
      for (const std::size_t i : part) kept.push_back(place_of(claims[i]->resource).state);
      kept.push_back(observed_key(static_cast<lane>(which)));
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
      topology_->run(static_cast<lane>(which), scripts_->renew, all_words.first(count + 1),
                     all_words.subspan(count + 1), context.deadline,
                     [self = shared_from_this(), all, part = std::move(part), ids = std::move(ids),
                      here = static_cast<lane>(which), sent](const result<reply>& answer) {
                       if (answer && !answer->elements.empty()) {
                         const auto at = to_server_time(answer->elements[0].integer);
                         self->times_.learn(sent, self->runtime_->now(), at);
                         for (std::size_t i = 0; i < part.size(); ++i) {
                           auto& told = all->answers[part[i]];
                           told = renewal_of(answer->elements, 1 + 5 * i, at);
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

}  // namespace holdfast::redis
