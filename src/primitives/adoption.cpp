// What is done with the token of a detached lease: it is continued here, renewed, or released.
#include "core/hold.hpp"
#include "core/lease_token.hpp"
#include "primitives/acquire_operation.hpp"
#include "primitives/client_state.hpp"
#include "primitives/operation.hpp"
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
  if (!caps.supports_detach) {
    return failure(errc::unsupported, caps.engine + " cannot hand a lease to another process");
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

// lost, where the engine knows nothing of it.
error told_of(error why) {
  if (why == errc::not_held) return {errc::lost, core::nothing_detached};
  return why;
}

}  // namespace

result<lease> client::adopt(std::string_view token, const adopt_options& options,
                            std::stop_token stop) const {
  if (state_->runtime->on_own_thread()) {
    return failure(errc::would_deadlock, "a blocking call on the client's own thread");
  }
  auto wanted = adopting(*state_, token, options);
  if (!wanted) return tl::unexpected(std::move(wanted.error()));
  if (stop.stop_requested()) return failure(errc::cancelled, "stopped before it began");
  auto meeting = std::make_shared<rendezvous<std::shared_ptr<core::hold>>>(state_->runtime);
  const auto acquisition = state_->engine->acquire(
      *std::move(wanted), [meeting](result<std::shared_ptr<core::hold>> answer) {
        meeting->arrive(std::move(answer));
      });
  const std::stop_callback on_stop(std::move(stop), [&acquisition] {
    if (acquisition) acquisition->cancel();
  });
  auto answer = meeting->wait();
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return lease(std::move(*answer));
}

awaitable<lease> client::async_adopt(std::string_view token, const adopt_options& options,
                                     std::stop_token stop) const {
  auto wanted = adopting(*state_, token, options);
  if (!wanted) return detail::make_refusal<lease>(std::move(wanted.error()));
  return awaitable<lease>(
      std::make_shared<detail::acquire_operation>(state_, *std::move(wanted), std::move(stop)));
}

result<void> client::renew(std::string_view token, duration ttl) const {
  auto found = read_token(*state_, token);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (ttl != duration{0}) found->ttl = ttl;
  const core::limits& limit = state_->engine->settings().limit;
  if (found->ttl < limit.min_ttl || found->ttl > limit.max_ttl) {
    return failure(errc::invalid, "ttl must be from 100 ms to 24 h");
  }
  const spi::claim_ptr claim = core::detached_claim(*found, state_->options.payload);
  const auto answer =
      wait_for<spi::granted>(state_->runtime, [&](spi::completion<spi::granted> done) {
        state_->engine->store().transfer(claim->id, claim, nullptr, state_->soon(),
                                         std::move(done));
      });
  if (answer) return {};
  return state_->told<void>(tl::unexpected(told_of(answer.error())), "renew", claim->resource.name);
}

result<void> client::release(std::string_view token) const {
  const auto found = read_token(*state_, token);
  if (!found) return tl::unexpected(found.error());
  const spi::claim_ptr claim = core::detached_claim(*found, state_->options.payload);
  const auto answer =
      wait_for<spi::departure>(state_->runtime, [&](spi::completion<spi::departure> done) {
        state_->engine->store().leave(claim, state_->soon(), std::move(done));
      });
  if (answer && *answer == spi::departure::was_holder) return {};
  const error why = answer ? error{errc::not_held, {}} : answer.error();
  return state_->told<void>(tl::unexpected(told_of(why)), "release", claim->resource.name);
}

}  // namespace holdfast
