// The verbs of a claim: each a round among the members.
#include "stores/quorum/quorum_store.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::quorum {

namespace {

spi::caps capabilities(const std::string& engine, const std::vector<member>& members) {
  spi::caps caps;
  caps.engine = engine;
  caps.pushes = false;
  caps.reports_waiters = false;
  caps.fair = false;
  caps.permits = false;
  caps.why_no_permits = "a majority does not limit permits";
  caps.supports_mode_change = false;
  caps.latches = false;
  caps.supports_listing = false;
  caps.excludes_processes = true;
  for (const member& each : members) {
    const spi::caps& of = each.store->caps();
    caps.shared = caps.shared && of.shared;
    caps.reports_holders = caps.reports_holders && of.reports_holders;
    caps.revokes = caps.revokes && of.revokes;
    caps.supports_lock_delay = caps.supports_lock_delay && of.supports_lock_delay;
    caps.supports_namespaces = caps.supports_namespaces && of.supports_namespaces;
    caps.expires = caps.expires && of.expires;
    caps.excludes_processes = caps.excludes_processes && of.excludes_processes;
  }
  return caps;
}

tl::unexpected<error> closed() { return failure(errc::cancelled, "quorum: closed"); }

// Two claims that split the vote must not collide again and again.
duration jittered(const quorum_context& quorum_context, duration recheck_after) {
  const duration most = recheck_after > duration{0}
                            ? std::min(recheck_after * 2, quorum_context.limit.recheck)
                            : quorum_context.limit.split_recheck;
  const auto range = static_cast<std::uint64_t>(std::max<duration::rep>(1, most.count()));
  return duration(static_cast<duration::rep>(quorum_context.runtime->random() % range));
}

}  // namespace

quorum_store::quorum_store(std::shared_ptr<spi::runtime> runtime, std::vector<member> members,
                           const settings& settings)
    : context_(
          std::make_shared<quorum_context>(std::move(runtime), std::move(members), settings.limit)),
      settings_(settings),
      caps_(capabilities(settings.engine, context_->members)),
      active_rounds_(std::make_shared<active_rounds>()) {}

quorum_store::~quorum_store() { close(); }

void quorum_store::close() noexcept {
  if (context_->closed.exchange(true, std::memory_order_acq_rel)) return;
  for (const member& each : context_->members) each.store->close();
  active_rounds_->clear();
}

result<void> quorum_store::accepts(const spi::claim& claim) const {
  if (context_->closed.load(std::memory_order_acquire)) return closed();
  if (context_->duplicate.load(std::memory_order_acquire)) {
    return failure(errc::invalid, "quorum: two members are one and the same server");
  }
  if (claim.mode == spi::mode::permit) {
    return failure(errc::unsupported, "quorum: a majority does not bound permits");
  }
  if (claim.ttl > settings_.longest_ttl) {
    const auto longest = std::chrono::floor<std::chrono::seconds>(settings_.longest_ttl).count();
    return failure(errc::invalid, "quorum: ttl above longest_ttl, which is " +
                                      std::to_string(longest) + " s here");
  }
  return {};
}

spi::claim_id quorum_store::new_id() const {
  spi::claim_id id;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = context_->runtime->random();
    for (std::size_t byte = 0; byte < 8; ++byte) {
      id.bytes[half * 8 + byte] = static_cast<std::uint8_t>(bits >> (byte * 8));
    }
  }
  return id;
}

void quorum_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  const auto before = active_rounds_->find(claim->id);
  if (before && before->granted()) return reaffirm(before, context, std::move(done));
  if (auto fine = accepts(*claim); !fine) {
    return done(tl::unexpected<error>(std::move(fine.error())));
  }
  const bool counts_earlier = core::mutated(core::mutant::quorum_earlier_round_counted);
  // An id that a late message may still carry is never used again.
  const bool same_id = before && (before->clean() || counts_earlier);
  const spi::claim_id id = !before ? claim->id : same_id ? before->at_members()->id : new_id();
  auto made = std::make_shared<round>(context_, *claim, id, std::move(wakeup));
  active_rounds_->put(claim->id, made, context_->runtime->now());
  auto settle = [quorum_context = context_, active_rounds = active_rounds_,
                 made = std::weak_ptr(made), claim,
                 done = std::move(done)](result<spi::outcome> answer) mutable {
    auto* no = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
    if (no != nullptr) no->recheck_after = jittered(*quorum_context, no->recheck_after);
    // Nobody will leave a try that was turned away.
    const auto over = made.lock();
    if (over && !claim->queued && !over->granted()) active_rounds->forget(claim->id, over);
    done(std::move(answer));
  };
  if (counts_earlier && before) made->inherit(*before);
  made->start(context, std::move(settle));
}

// The core asks again for what it was granted, because the answer came too late to be useful.
// Members that still hold it have held it all along: nobody else can have had a majority meanwhile.
void quorum_store::reaffirm(const std::shared_ptr<round>& held, const spi::op_context& context,
                            spi::completion<spi::outcome> done) {
  auto counted = [held, done = std::move(done)](renewal_round::answers answers) mutable {
    const spi::renewal& answer = answers.front();
    if (answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held) {
      return done(spi::outcome(answer.grant));
    }
    // A minority is worse than nothing: the next attempt starts again under another id, since
    // leaving this one in the background could otherwise remove what the next one is granted.
    held->abandon();
    done(failure(errc::unavailable, "quorum: granted before, and no majority has it now"));
  };
  std::make_shared<renewal_round>(context_, std::vector{held}, std::move(counted))->start(context);
}

// Only called where a store pushes; this one does not.
void quorum_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void quorum_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  if (context_->closed.load(std::memory_order_acquire)) return done(closed());
  const auto found = active_rounds_->find(claim->id);
  if (!found) return done(spi::departure::gone);
  found->leave(context, [active_rounds = active_rounds_, claim, found,
                         done = std::move(done)](result<spi::departure> answer) mutable {
    if (answer) active_rounds->forget(claim->id, found);
    done(std::move(answer));
  });
}

void quorum_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  if (context_->closed.load(std::memory_order_acquire)) return done(closed());
  std::vector<std::shared_ptr<round>> rounds;
  rounds.reserve(claims.size());
  for (const spi::claim_ptr& claim : claims) rounds.push_back(active_rounds_->find(claim->id));
  auto counted = [active_rounds = active_rounds_, claims = std::move(claims), rounds,
                  done = std::move(done)](renewal_round::answers answers) mutable {
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (answers[i].state != spi::hold_state::lost || !rounds[i]) continue;
      rounds[i]->abandon();
      active_rounds->forget(claims[i]->id, rounds[i]);
    }
    done(std::move(answers));
  };
  std::make_shared<renewal_round>(context_, rounds, std::move(counted))->start(context);
  for (const auto& each : rounds) {
    if (each) each->top_up(context);
  }
}

// --- what operators ask: every member is asked, and what a majority may have is shown ------------

namespace {

// Asks every member and collects their answers; completes with all of them when the last one has
// come. `ask`: with a member's store and the completion for its answer.
template <class T, class Ask>
void ask_all(const quorum_context& quorum_context, Ask&& ask,
             spi::function<void(const std::vector<result<T>>&)> gathered) {
  struct survey {
    std::mutex mutex;
    std::vector<result<T>> answers;  // guarded by mutex
    std::size_t pending;             // guarded by mutex
    spi::function<void(const std::vector<result<T>>&)> gathered;
  };
  const std::size_t members = quorum_context.members.size();
  const auto asked = std::make_shared<survey>();
  asked->answers.assign(members, failure(errc::unavailable));
  asked->pending = members;
  asked->gathered = std::move(gathered);
  for (std::size_t i = 0; i < members; ++i) {
    ask(*quorum_context.members[i].store, [asked, i](result<T> answer) {
      {
        const std::lock_guard lock(asked->mutex);
        asked->answers[i] = std::move(answer);
        if (--asked->pending > 0) return;
      }
      asked->gathered(asked->answers);
    });
  }
}

template <class T>
std::size_t heard(const std::vector<result<T>>& answers) {
  return static_cast<std::size_t>(
      std::count_if(answers.begin(), answers.end(), [](const auto& each) { return each; }));
}

template <class T>
tl::unexpected<error> too_few(const std::vector<result<T>>& answers) {
  for (const auto& each : answers) {
    if (!each && each.error() != error{}) {
      return failure(each.error().code,
                     "quorum: no majority answered (" + each.error().detail + ")");
    }
  }
  return failure(errc::unavailable, "quorum: no majority answered");
}

// A holder listed by so many members that, with those that did not answer, it may have a majority.
template <class T, class HoldersOf>
std::vector<spi::holder> likely(const std::vector<result<T>>& answers, HoldersOf holders_of) {
  struct counted {
    spi::holder shown;
    std::vector<std::optional<fence_token>> fences;  // one from each member that lists it
  };
  std::map<std::string, counted> all;
  for (const auto& answer : answers) {
    if (!answer) continue;
    for (const spi::holder& each : std::invoke(holders_of, *answer)) {
      counted& at = all[each.claim];
      const bool first = at.fences.empty();
      const auto least = first ? each.remaining : std::min(at.shown.remaining, each.remaining);
      if (first) at.shown = each;
      at.shown.remaining = least;
      at.fences.push_back(each.fence);
    }
  }
  const std::size_t members = answers.size();
  const std::size_t silent = members - heard(answers);
  std::vector<spi::holder> shown;
  for (auto& [claim, each] : all) {
    if (each.fences.size() + silent < majority_of(members)) continue;
    // The fence of the lease: the greatest that a majority has. A member that was not counted when
    // the claim was granted may have given it a greater one.
    std::sort(each.fences.begin(), each.fences.end(), std::greater<>());
    each.shown.fence = each.fences[std::min(majority_of(members), each.fences.size()) - 1];
    shown.push_back(std::move(each.shown));
  }
  return shown;
}

// So many members are blocked that the rest is not a majority: how long until
// enough of them are open again.
std::optional<duration> blocked_for(const std::vector<result<spi::resource_state>>& answers) {
  std::vector<duration> times;
  for (const auto& each : answers) {
    times.push_back(each ? each->blocked_for.value_or(duration{0}) : duration{0});
  }
  const std::size_t decisive = times.size() - majority_of(times.size());
  std::sort(times.begin(), times.end(), std::greater<>());
  return times[decisive] > duration{0} ? std::optional(times[decisive]) : std::nullopt;
}

}  // namespace

void quorum_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  const spi::op_context soon = context_->soon(context.deadline, forever);
  ask_all<spi::resource_state>(
      *context_,
      [&](spi::store& member, auto answer) { member.inspect(resource, soon, std::move(answer)); },
      [done = std::move(done)](const std::vector<result<spi::resource_state>>& answers) mutable {
        if (heard(answers) < majority_of(answers.size())) return done(too_few(answers));
        auto holders = likely(answers, &spi::resource_state::holders);
        done(spi::resource_state{std::move(holders), {}, blocked_for(answers)});
      });
}

void quorum_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  using holders = std::vector<spi::holder>;
  const spi::op_context soon = context_->soon(context.deadline, forever);
  ask_all<holders>(
      *context_,
      [&](spi::store& member, auto answer) {
        member.revoke(resource, how, claim, soon, std::move(answer));
      },
      [done = std::move(done)](const std::vector<result<holders>>& answers) mutable {
        if (heard(answers) < majority_of(answers.size())) return done(too_few(answers));
        done(likely(answers, std::identity()));
      });
}

void quorum_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  using status = spi::check::status;
  const auto quorum_context = context_;
  const std::size_t members = quorum_context->members.size();
  auto gathered = [quorum_context, members, done = std::move(done)](
                      const std::vector<result<std::vector<spi::check>>>& answers) mutable {
    const std::size_t up = heard(answers);
    std::vector<spi::check> all;
    const std::string count = std::to_string(up) + " of " + std::to_string(members);
    all.push_back({"quorum", up < majority_of(members) ? status::fail : status::ok,
                   count + " members answer, " + std::to_string(majority_of(members)) + " needed",
                   up < majority_of(members) ? "bring members back" : ""});
    if (members < 3 || members % 2 == 0) {
      all.push_back({"members", status::warn,
                     std::to_string(members) + " members: " +
                         (members < 3 ? "one failure stops everything"
                                      : "one member fewer tolerates as many failures"),
                     "use 3 or 5 members"});
    }
    if (quorum_context->duplicate.load(std::memory_order_acquire)) {
      all.push_back({"members", status::fail, "two members are one and the same server",
                     "list every server once"});
    }
    for (std::size_t i = 0; i < members; ++i) {
      const std::string& name = quorum_context->members[i].name;
      if (!answers[i]) {
        all.push_back({name, up < members ? status::warn : status::fail,
                       answers[i].error().message(), "start it, or look at the network"});
        continue;
      }
      for (spi::check each : *answers[i]) {
        each.name = name + ": " + each.name;
        all.push_back(std::move(each));
      }
    }
    done(std::move(all));
  };
  ask_all<std::vector<spi::check>>(
      *quorum_context,
      [&](spi::store& member, auto answer) { member.probe(context, std::move(answer)); },
      std::move(gathered));
}

// --- not supported -------------------------------------------------------------------------------

void quorum_store::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                          spi::completion<spi::granted> done) {
  done(failure(errc::unsupported, caps_.engine + " has no upgrade or downgrade"));
}
void quorum_store::list(const std::string&, const std::string&, const spi::op_context&,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  done(failure(errc::unsupported, caps_.engine + " has no list; ask its members"));
}
result<std::unique_ptr<spi::subscription>> quorum_store::observe(
    const spi::resource_id&, spi::function<void(const spi::store_event&)>) {
  return failure(errc::unsupported, caps_.engine + " has no events; watch its members");
}
void quorum_store::change_latch(const spi::resource_id&, const spi::latch_change&,
                                const spi::op_context&, spi::completion<spi::latch_state> done) {
  done(failure(errc::unsupported, caps_.engine + " has no latches"));
}
void quorum_store::read_latch(const spi::resource_id&, const spi::op_context&,
                              spi::completion<spi::latch_state> done) {
  done(failure(errc::unsupported, caps_.engine + " has no latches"));
}
result<std::unique_ptr<spi::subscription>> quorum_store::watch_latch(const spi::resource_id&,
                                                                     spi::latch_watch) {
  return failure(errc::unsupported, caps_.engine + " has no latches");
}

}  // namespace holdfast::quorum
