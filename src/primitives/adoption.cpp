// What is done with the token of a detached lease: it is continued here, renewed, or released.
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
  if (of.engine->inert()) {
    return failure(errc::cancelled, "the client is closed, or the process was forked");
  }
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

// As the caller is answered: lost, where the engine knows nothing of it.
result<void> told(error why, const std::string& where, const char* verb, const std::string& name) {
  if (why == errc::not_held) why = {errc::lost, core::nothing_detached};
  return tl::unexpected(core::blamed(std::move(why), where, verb, name));
}

using token_verb = move_only_function<void(spi::completion<void>)>;

// The verbs as they are begun by the blocking and the asynchronous calls alike.
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
        [where = state->engine->settings().where, name = claim->resource.name,
         done = std::move(done)](const result<spi::granted>& answer) mutable {
          done(answer ? result<void>{} : told(answer.error(), where, "renew", name));
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
        [where = state->engine->settings().where, name = claim->resource.name,
         done = std::move(done)](const result<spi::departure>& answer) mutable {
          if (answer && *answer == spi::departure::was_holder) return done({});
          done(told(answer ? error{errc::not_held, {}} : answer.error(), where, "release", name));
        });
  });
}

result<void> carry_out(const client::state& state, result<token_verb> verb) {
  if (!verb) return tl::unexpected(std::move(verb.error()));
  return wait_for<void>(state.runtime, *std::move(verb));
}

awaitable<void> carry_out_later(const client::state& state, result<token_verb> verb) {
  if (!verb) return detail::make_refusal<void>(std::move(verb.error()));
  return detail::make_awaitable<void>(state.engine, *std::move(verb));
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
  return carry_out(*state_, renewing(state_, token, ttl));
}

awaitable<void> client::async_renew(std::string_view token, duration ttl) const {
  return carry_out_later(*state_, renewing(state_, token, ttl));
}

result<void> client::release(std::string_view token) const {
  return carry_out(*state_, releasing(state_, token));
}

awaitable<void> client::async_release(std::string_view token) const {
  return carry_out_later(*state_, releasing(state_, token));
}

}  // namespace holdfast
