// The verbs of a claim: each a round among the members.
#include "stores/quorum/quorum_store.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <chrono>
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

// Whoever shares the vote with another must not meet it again and again.
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

void quorum_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  const auto before = active_rounds_->find(claim->id);
  if (before && before->granted()) return reaffirm(before, context, std::move(done));
  if (auto fine = accepts(*claim); !fine) {
    return done(tl::unexpected<error>(std::move(fine.error())));
  }
  const bool counts_earlier = core::mutated(core::mutant::quorum_earlier_round_counted);
  // An id that something late may still carry is never used again.
  const bool same_id = before && (before->clean() || counts_earlier);
  const spi::claim_id id = !before ? claim->id : same_id ? before->at_members()->id : new_id();
  auto made = std::make_shared<round>(context_, *claim, id, std::move(wakeup));
  active_rounds_->put(claim->id, made, context_->runtime->now());
  auto settle = [quorum_context = context_, active_rounds = active_rounds_,
                 made = std::weak_ptr(made), claim,
                 done = std::move(done)](result<spi::outcome> answer) mutable {
    auto* no = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
    if (no != nullptr) no->recheck_after = jittered(*quorum_context, no->recheck_after);
    // Nobody leaves a try that was turned away.
    const auto over = made.lock();
    if (over && !claim->queued && !over->granted()) active_rounds->forget(claim->id, over);
    done(std::move(answer));
  };
  if (counts_earlier && before) made->inherit(*before);
  made->start(context, std::move(settle));
}

// The core asks again for what it was granted, because the answer came too late to be of use.
// Members that still hold it have held it since: nobody else can have had a majority meanwhile.
void quorum_store::reaffirm(const std::shared_ptr<round>& held, const spi::op_context& context,
                            spi::completion<spi::outcome> done) {
  auto counted = [held, done = std::move(done)](renewal_round::answers answers) mutable {
    const spi::renewal& answer = answers.front();
    if (answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held) {
      return done(spi::outcome(answer.grant));
    }
    // Half of it is worse than nothing: the next attempt starts again, under another id, since what is
    // left here in the background could else take away what is granted there.
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

void quorum_store::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                          spi::completion<spi::granted> done) {
  done(failure(errc::unsupported, caps_.engine + " has no upgrade or downgrade"));
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

void quorum_store::close() noexcept {
  if (context_->closed.exchange(true, std::memory_order_acq_rel)) return;
  for (const member& each : context_->members) each.store->close();
  active_rounds_->clear();
}

}  // namespace holdfast::quorum
