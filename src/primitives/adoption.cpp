// What can be done with the token of a detached lease: continue the lease here, renew it, or
// release it.
#include "core/hold.hpp"
#include "core/lease_token.hpp"
#include "primitives/lock_handle_inside.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/client.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

// As far as it can be judged without the engine.
result<core::lease_token> read_token(const client::state& of, std::string_view text) {
  if (auto fine = of.usable(); !fine) return tl::unexpected(std::move(fine.error()));
  auto token = core::parse_token(text);
  if (!token) return token;
  const spi::caps& caps = of.engine->store().caps();
  if (token->engine != caps.engine) {
    return failure(errc::invalid, "this token is of " + token->engine + ", not of " + caps.engine);
  }
  if (token->resource.space != of.options.name_space) {
    return failure(errc::invalid, "this token is of another namespace");
  }
  if (auto fine = core::check_detachable(caps, token->mode, token->role); !fine) {
    return tl::unexpected(core::blamed(std::move(fine.error()), of.engine->settings().where,
                                       "adopt", token->resource.name));
  }
  return token;
}

result<core::request> adopting(const client::state& of, std::string_view text,
                               const adopt_options& how) {
  auto token = read_token(of, text);
  if (!token) return tl::unexpected(std::move(token.error()));
  core::request wanted;
  wanted.resource = token->resource;
  wanted.mode = token->mode;
  wanted.role = token->role;
  wanted.permits = token->permits;
  wanted.max = token->max;
  wanted.lock.ttl = how.ttl == duration{0} ? token->ttl : how.ttl;
  wanted.lock.renew = how.renew;
  wanted.lock.notice = how.notice;
  wanted.lock.max_hold = how.max_hold;
  wanted.lock.lock_delay = token->lock_delay;
  wanted.wait = how.wait;
  wanted.adopts = core::adoption{token->id, token->fence};
  return wanted;
}

// What the caller gets: lost, if the engine does not know the lease.
result<void> as_lost(error why) {
  if (why == errc::not_held) why = {errc::lost, core::nothing_detached};
  return tl::unexpected(std::move(why));
}

using token_verb = detail::verb<void>;

result<token_verb> renewing(const std::shared_ptr<client::state>& state, std::string_view text,
                            duration ttl) {
  auto token = read_token(*state, text);
  if (!token) return tl::unexpected(std::move(token.error()));
  if (ttl != duration{0}) token->ttl = ttl;
  const core::limits& limit = state->engine->settings().limit;
  if (token->ttl < limit.min_ttl || token->ttl > limit.max_ttl) {
    return failure(errc::invalid, "ttl must be from 100 ms to 24 h");
  }
  return token_verb([state, claim = spi::claim_ptr(core::detached_claim(
                                *token, state->options.payload))](spi::completion<void> done) {
    state->engine->store().transfer(
        claim->id, claim, nullptr, state->soon(),
        [done = state->telling(std::move(done), "renew", claim->resource.name)](
            const result<spi::granted>& answer) mutable {
          done(answer ? result<void>{} : as_lost(answer.error()));
        });
  });
}

result<token_verb> releasing(const std::shared_ptr<client::state>& state, std::string_view text) {
  auto token = read_token(*state, text);
  if (!token) return tl::unexpected(std::move(token.error()));
  return token_verb([state, claim = spi::claim_ptr(core::detached_claim(
                                *token, state->options.payload))](spi::completion<void> done) {
    state->engine->store().leave(
        claim, state->soon(),
        [done = state->telling(std::move(done), "release", claim->resource.name)](
            const result<spi::departure>& answer) mutable {
          if (answer && *answer == spi::departure::was_holder) return done({});
          done(as_lost(answer ? error{errc::not_held, {}} : answer.error()));
        });
  });
}

}  // namespace

result<lease> client::adopt(std::string_view token, const adopt_options& options,
                            std::stop_token stop) const {
  auto wanted = adopting(*state_, token, options);
  if (!wanted) return tl::unexpected(std::move(wanted.error()));
  return detail::acquire_now(*state_, *std::move(wanted), std::move(stop));
}

awaitable<lease> client::async_adopt(std::string_view token, const adopt_options& options,
                                     std::stop_token stop) const {
  auto wanted = adopting(*state_, token, options);
  if (!wanted) return detail::make_refusal<lease>(std::move(wanted.error()));
  return awaitable<lease>(
      std::make_shared<detail::acquire_operation>(state_, *std::move(wanted), std::move(stop)));
}

result<void> client::renew(std::string_view token, duration ttl) const {
  return detail::call_now(*state_->engine, renewing(state_, token, ttl));
}

awaitable<void> client::async_renew(std::string_view token, duration ttl) const {
  return detail::call_soon(state_->engine, renewing(state_, token, ttl));
}

result<void> client::release(std::string_view token) const {
  return detail::call_now(*state_->engine, releasing(state_, token));
}

awaitable<void> client::async_release(std::string_view token) const {
  return detail::call_soon(state_->engine, releasing(state_, token));
}

}  // namespace holdfast
