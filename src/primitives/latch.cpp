#include "core/backoff.hpp"
#include "core/names.hpp"
#include "primitives/client_state.hpp"
#include "primitives/latch_wait.hpp"
#include "primitives/pause.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/latch.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

constexpr std::uint32_t greatest_count = 1'000'000;
constexpr duration shortest_life = std::chrono::seconds(1);
constexpr duration longest_life = std::chrono::days(30);
constexpr duration change_limit = std::chrono::seconds(10);  // repetitions included
constexpr duration one_try = std::chrono::seconds(3);

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

spi::claim_id id_from(const countdown_id& id) {
  spi::claim_id made;
  for (std::size_t i = 0; i < 8; ++i) {
    made.bytes[i] = static_cast<std::uint8_t>(id.high >> (56 - 8 * i));
    made.bytes[8 + i] = static_cast<std::uint8_t>(id.low >> (56 - 8 * i));
  }
  return made;
}

result<void> latches_usable(const client::state& state) {
  if (state.engine->inert()) return failure(errc::cancelled, "the client is closed or forked");
  const spi::caps& caps = state.engine->store().caps();
  if (!caps.latches) return failure(errc::unsupported, caps.engine + " has no latches");
  return {};
}

result<spi::latch_state> change(const client::state& state, const spi::resource_id& resource,
                                const spi::latch_change& wish) {
  if (auto fine = latches_usable(state); !fine) return tl::unexpected(fine.error());
  const retry_policy& retry = state.options.retry;
  const time_point deadline = state.runtime->now() + std::min(change_limit, retry.within);
  core::backoff backoff(retry);
  for (std::uint32_t attempts = 1;; ++attempts) {
    const time_point now = state.runtime->now();
    const spi::op_context context{.deadline = std::min(deadline, now + one_try)};
    auto answer =
        wait_for<spi::latch_state>(state.runtime, [&](spi::completion<spi::latch_state> done) {
          state.engine->store().change_latch(resource, wish, context, std::move(done));
        });
    if (answer || !(answer.error() == errc::unavailable) || state.engine->inert()) return answer;
    if (attempts >= retry.attempts) return answer;
    const duration step = backoff.next(state.runtime->random());
    const time_point next = state.runtime->now() + step;
    if (next >= deadline) return answer;
    detail::pause_until(state.runtime, next);
  }
}

}  // namespace

countdown_id countdown_id::from(std::string_view text) noexcept {
  countdown_id id{0x9e3779b97f4a7c15ULL, 0xd1b54a32d192ed03ULL ^ text.size()};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    id.high = mix(id.high + byte + 1);
    id.low = mix(id.low ^ id.high);
  }
  return id;
}

latch::latch(const client& client, std::string name, const latch_options& options)
    : client_(client), name_(std::move(name)), options_(options) {
  if (auto fine = core::check_name(name_); !fine) throw lock_error(fine.error());
  if (options.life < shortest_life || options.life > longest_life) {
    throw lock_error(error{errc::invalid, "a latch lives from 1 s to 30 days"});
  }
}

result<void> latch::set(std::uint32_t count) {
  if (count == 0 || count > greatest_count) {
    return failure(errc::invalid, "a latch is set to 1 to 1,000,000");
  }
  const client::state& state = *client_.inside();
  const auto answer = change(state, {state.options.space, name_},
                             {.what = spi::latch_change::kind::set,
                              .count = count,
                              .id = state.engine->new_claim_id(),
                              .life = options_.life});
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

result<std::uint32_t> latch::count_down(std::uint32_t by, std::optional<countdown_id> id) {
  if (by == 0 || by > greatest_count) {
    return failure(errc::invalid, "a latch is counted down by 1 to 1,000,000");
  }
  const client::state& state = *client_.inside();
  const auto answer = change(state, {state.options.space, name_},
                             {.what = spi::latch_change::kind::down,
                              .count = by,
                              .id = id ? id_from(*id) : state.engine->new_claim_id(),
                              .life = options_.life});
  if (!answer) return tl::unexpected(answer.error());
  return answer->count.value_or(0);
}

result<std::optional<std::uint32_t>> latch::count() const {
  const client::state& state = *client_.inside();
  if (auto fine = latches_usable(state); !fine) return tl::unexpected(fine.error());
  const auto answer = wait_for<
      spi::latch_state>(state.runtime, [&](spi::completion<spi::latch_state> done) {
    state.engine->store().read_latch({state.options.space, name_}, state.soon(), std::move(done));
  });
  if (!answer) return tl::unexpected(answer.error());
  return answer->count;
}

result<void> latch::wait(const acquire_options& options, std::stop_token token) const {
  const auto& state = client_.inside();
  if (options.wait < duration{0}) return failure(errc::invalid, "wait must not be negative");
  if (auto fine = latches_usable(*state); !fine) return fine;
  return wait_for<void>(state->runtime, [&](spi::completion<void> done) {
    std::make_shared<latch_wait>(state, spi::resource_id{state->options.space, name_}, options.wait,
                                 std::move(done))
        ->start(std::move(token));
  });
}

void latch::async_wait(const acquire_options& options, std::stop_token token,
                       spi::function<void(result<void>)> done) const {
  const auto& state = client_.inside();
  spi::completion<void> deliver = [state, done = std::move(done)](result<void> answer) mutable {
    state->deliver([done = std::move(done), answer = std::move(answer)]() mutable {
      done(std::move(answer));
    });
  };
  if (options.wait < duration{0}) {
    return deliver(failure(errc::invalid, "wait must not be negative"));
  }
  if (auto fine = latches_usable(*state); !fine) return deliver(std::move(fine));
  std::make_shared<latch_wait>(state, spi::resource_id{state->options.space, name_}, options.wait,
                               std::move(deliver))
      ->start(std::move(token));
}

}  // namespace holdfast
