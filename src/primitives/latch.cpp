#include "core/backoff.hpp"
#include "core/names.hpp"
#include "primitives/client_state.hpp"
#include "primitives/latch_wait.hpp"
#include "primitives/operation.hpp"

#include <holdfast/latch.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
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
  if (auto fine = state.usable(); !fine) return fine;
  const spi::caps& caps = state.engine->store().caps();
  if (!caps.latches) return failure(errc::unsupported, caps.engine + " has no latches");
  return {};
}

// One change from the call to its answer, repeated under the same id while there is none. Thread-safe.
class latch_update : public std::enable_shared_from_this<latch_update> {
 public:
  latch_update(std::shared_ptr<client::state> client, spi::resource_id resource,
               const spi::latch_change& change, spi::completion<spi::latch_state> done)
      : client_(std::move(client)),
        resource_(std::move(resource)),
        change_(change),
        deadline_(client_->runtime->now() + std::min(change_limit, client_->options.retry.within)),
        backoff_(client_->options.retry),
        done_(std::move(done)) {}

  void send() {
    if (auto fine = latches_usable(*client_); !fine) return done_(tl::unexpected(fine.error()));
    const time_point now = client_->runtime->now();
    const time_point until = std::min(deadline_, now + one_try);
    const spi::op_context context{.deadline = until, .reach_by = until};
    client_->engine->store().change_latch(
        resource_, change_, context,
        [self = shared_from_this()](result<spi::latch_state> answer) { self->answered(answer); });
  }

 private:
  void answered(const result<spi::latch_state>& answer) {
    const bool definite = answer || !(answer.error() == errc::unavailable);
    if (definite || client_->engine->inert()) return done_(answer);
    if (++attempts_ >= client_->options.retry.attempts) return done_(answer);
    const time_point next = client_->runtime->now() + backoff_.next(client_->runtime->random());
    if (next >= deadline_) return done_(answer);
    client_->runtime->at(next, [self = shared_from_this()] { self->send(); });
  }

  const std::shared_ptr<client::state> client_;
  const spi::resource_id resource_;
  const spi::latch_change change_;
  const time_point deadline_;
  // Touched by one try after the other.
  std::uint32_t attempts_ = 0;
  core::backoff backoff_;
  spi::completion<spi::latch_state> done_;
};

// Turns the store's answer into the caller's: that it is done, or the count.
template <class T>
spi::completion<spi::latch_state> answering(const client::state& state, const char* action,
                                            const std::string& name, spi::completion<T> done) {
  return [done = state.telling(std::move(done), action, name)](
             const result<spi::latch_state>& answer) mutable {
    if (!answer) return done(tl::unexpected(answer.error()));
    if constexpr (std::is_void_v<T>) {
      done({});
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      done(answer->count.value_or(0));
    } else {
      done(answer->count);
    }
  };
}

template <class T>
detail::verb<T> changing(const std::shared_ptr<client::state>& state, const char* action,
                         const std::string& name, const spi::latch_change& change) {
  return [state, action, name, change](spi::completion<T> done) {
    std::make_shared<latch_update>(state, spi::resource_id{state->options.name_space, name}, change,
                                   answering(*state, action, name, std::move(done)))
        ->send();
  };
}

result<detail::verb<void>> setting(const std::shared_ptr<client::state>& state,
                                   const std::string& name, std::uint32_t count,
                                   const latch_options& options) {
  if (count == 0 || count > greatest_count) {
    return failure(errc::invalid, "a latch is set to 1 to 1,000,000");
  }
  return changing<void>(state, "set", name,
                        {.what = spi::latch_change::kind::set,
                         .count = count,
                         .id = state->engine->new_claim_id(),
                         .life = options.life});
}

result<detail::verb<std::uint32_t>> counting_down(const std::shared_ptr<client::state>& state,
                                                  const std::string& name, std::uint32_t by,
                                                  const std::optional<countdown_id>& id,
                                                  const latch_options& options) {
  if (by == 0 || by > greatest_count) {
    return failure(errc::invalid, "a latch is counted down by 1 to 1,000,000");
  }
  return changing<std::uint32_t>(state, "count down", name,
                                 {.what = spi::latch_change::kind::down,
                                  .count = by,
                                  .id = id ? id_from(*id) : state->engine->new_claim_id(),
                                  .life = options.life});
}

using optional_count = std::optional<std::uint32_t>;

detail::verb<optional_count> reading_count(const std::shared_ptr<client::state>& state,
                                           const std::string& name) {
  return [state, name](spi::completion<optional_count> done) {
    auto answer = answering(*state, "read", name, std::move(done));
    if (auto fine = latches_usable(*state); !fine) return answer(tl::unexpected(fine.error()));
    state->engine->store().read_latch({state->options.name_space, name}, state->soon(),
                                      std::move(answer));
  };
}

// Must be started. Null if latches cannot be used: `done` has the error.
std::shared_ptr<latch_wait> make_wait(const std::shared_ptr<client::state>& state,
                                      const std::string& name, duration wait,
                                      spi::completion<void> done) {
  auto answer = state->telling(std::move(done), "wait for", name);
  if (auto fine = latches_usable(*state); !fine) {
    answer(std::move(fine));
    return nullptr;
  }
  return std::make_shared<latch_wait>(state, spi::resource_id{state->options.name_space, name},
                                      wait, std::move(answer));
}

class latch_operation final : public detail::client_operation<void> {
 public:
  latch_operation(std::shared_ptr<client::state> client, const std::string& name,
                  const acquire_options& options, std::stop_token token)
      : client_operation<void>(client->engine),
        client_(std::move(client)),
        name_(name),
        wait_(options.wait),
        token_(std::move(token)) {}

 private:
  void begin() override {
    const auto self = std::static_pointer_cast<latch_operation>(shared_from_this());
    waiting_ = make_wait(client_, name_, wait_,
                         [self](result<void> answer) { self->arrived(std::move(answer)); });
    if (waiting_) waiting_->start(std::move(token_));
  }
  void stop() noexcept override {
    if (waiting_) waiting_->cancel();
  }

  const std::shared_ptr<client::state> client_;
  const std::string name_;
  const duration wait_;
  std::stop_token token_;
  std::shared_ptr<latch_wait> waiting_;  // set by begin()
};

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

result<latch> latch::make(const client& client, std::string name, const latch_options& options) {
  return detail::made([&] { return latch(client, std::move(name), options); });
}

result<void> latch::set(std::uint32_t count) {
  const auto& state = client_.inside();
  return detail::call_now(*state->engine, setting(state, name_, count, options_));
}

awaitable<void> latch::async_set(std::uint32_t count) {
  const auto& state = client_.inside();
  return detail::call_soon(state->engine, setting(state, name_, count, options_));
}

result<std::uint32_t> latch::count_down(std::uint32_t by, std::optional<countdown_id> id) {
  const auto& state = client_.inside();
  return detail::call_now(*state->engine, counting_down(state, name_, by, id, options_));
}

awaitable<std::uint32_t> latch::async_count_down(std::uint32_t by, std::optional<countdown_id> id) {
  const auto& state = client_.inside();
  return detail::call_soon(state->engine, counting_down(state, name_, by, id, options_));
}

result<optional_count> latch::count() const {
  const auto& state = client_.inside();
  return detail::call_now<optional_count>(*state->engine, reading_count(state, name_));
}

awaitable<optional_count> latch::async_count() const {
  const auto& state = client_.inside();
  return detail::call_soon<optional_count>(state->engine, reading_count(state, name_));
}

result<void> latch::wait(const acquire_options& options, std::stop_token token) const {
  const auto& state = client_.inside();
  return wait_for<void>(state->runtime, [&](spi::completion<void> done) {
    const auto wait = make_wait(state, name_, options.wait, std::move(done));
    if (wait) wait->start(std::move(token));
  });
}

awaitable<void> latch::async_wait(const acquire_options& options, std::stop_token token) const {
  return awaitable<void>(
      std::make_shared<latch_operation>(client_.inside(), name_, options, std::move(token)));
}

void latch::async_wait(const acquire_options& options, std::stop_token token,
                       move_only_function<void(result<void>)> done) const {
  async_wait(options, std::move(token)).then(std::move(done));
}

}  // namespace holdfast
