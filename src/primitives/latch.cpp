#include "core/backoff.hpp"
#include "core/names.hpp"
#include "primitives/client_state.hpp"
#include "primitives/latch_wait.hpp"
#include "primitives/operation.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/latch.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
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
  if (state.engine->inert())
    return failure(errc::cancelled, "the client is closed, or the process was forked");
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

using latch_verb = move_only_function<void(spi::completion<spi::latch_state>)>;

// The verbs as they are begun by the blocking and the asynchronous calls alike.
latch_verb changing(const std::shared_ptr<client::state>& state, const std::string& name,
                    const spi::latch_change& change) {
  return [state, resource = spi::resource_id{state->options.name_space, name},
          change](spi::completion<spi::latch_state> done) {
    std::make_shared<latch_update>(state, resource, change, std::move(done))->send();
  };
}

latch_verb reading_latch(const std::shared_ptr<client::state>& state, const std::string& name) {
  return [state, name](spi::completion<spi::latch_state> done) {
    if (auto fine = latches_usable(*state); !fine) return done(tl::unexpected(fine.error()));
    state->engine->store().read_latch({state->options.name_space, name}, state->soon(),
                                      std::move(done));
  };
}

// What the caller is answered.
result<void> as_done(const result<spi::latch_state>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  return {};
}
result<std::uint32_t> as_count(const result<spi::latch_state>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  return answer->count.value_or(0);
}
result<std::optional<std::uint32_t>> as_optional_count(const result<spi::latch_state>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  return answer->count;
}

template <class T>
awaitable<T> awaiting(const std::shared_ptr<client::state>& state, latch_verb verb,
                      result<T> (*answer_of)(const result<spi::latch_state>&)) {
  return detail::make_awaitable<T>(
      state->engine, [verb = std::move(verb), answer_of](spi::completion<T> done) mutable {
        verb([done = std::move(done), answer_of](const result<spi::latch_state>& answer) mutable {
          done(answer_of(answer));
        });
      });
}

result<spi::latch_state> blocking(const client::state& state, latch_verb verb) {
  return wait_for<spi::latch_state>(state.runtime, std::move(verb));
}

result<void> check_count(std::uint32_t count, const char* why) {
  if (count == 0 || count > greatest_count) return failure(errc::invalid, why);
  return {};
}

constexpr const char* bad_set = "a latch is set to 1 to 1,000,000";
constexpr const char* bad_count_down = "a latch is counted down by 1 to 1,000,000";

class latch_operation final : public detail::client_operation<void> {
 public:
  latch_operation(std::shared_ptr<client::state> client, const std::string& name,
                  const acquire_options& options, std::stop_token token)
      : client_operation<void>(client->engine),
        client_(std::move(client)),
        name_(name),
        wait_(options.wait),
        token_(std::move(token)) {}

  void cancel() noexcept override {
    std::shared_ptr<latch_wait> wait;
    {
      const std::lock_guard lock(mutex_);
      wait = waiting_;
    }
    if (wait) wait->cancel();
  }

 private:
  void begin() override {
    const auto self = std::static_pointer_cast<latch_operation>(shared_from_this());
    if (auto fine = latches_usable(*client_); !fine) return arrived(std::move(fine));
    auto wait = std::make_shared<latch_wait>(
        client_, spi::resource_id{client_->options.name_space, name_}, wait_,
        [self](result<void> answer) { self->arrived(std::move(answer)); });
    {
      const std::lock_guard lock(mutex_);
      waiting_ = wait;
    }
    wait->start(std::move(token_));
  }

  const std::shared_ptr<client::state> client_;
  const std::string name_;
  const duration wait_;
  std::stop_token token_;
  std::mutex mutex_;
  std::shared_ptr<latch_wait> waiting_;  // guarded by mutex_
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

namespace {

spi::latch_change setting(const client::state& state, std::uint32_t count,
                          const latch_options& options) {
  return {.what = spi::latch_change::kind::set,
          .count = count,
          .id = state.engine->new_claim_id(),
          .life = options.life};
}

spi::latch_change counting_down(const client::state& state, std::uint32_t by,
                                const std::optional<countdown_id>& id,
                                const latch_options& options) {
  return {.what = spi::latch_change::kind::down,
          .count = by,
          .id = id ? id_from(*id) : state.engine->new_claim_id(),
          .life = options.life};
}

}  // namespace

result<void> latch::set(std::uint32_t count) {
  if (auto fine = check_count(count, bad_set); !fine) return fine;
  const auto& state = client_.inside();
  return as_done(blocking(*state, changing(state, name_, setting(*state, count, options_))));
}

awaitable<void> latch::async_set(std::uint32_t count) {
  if (auto fine = check_count(count, bad_set); !fine)
    return detail::make_refusal<void>(fine.error());
  const auto& state = client_.inside();
  return awaiting(state, changing(state, name_, setting(*state, count, options_)), as_done);
}

result<std::uint32_t> latch::count_down(std::uint32_t by, std::optional<countdown_id> id) {
  if (auto fine = check_count(by, bad_count_down); !fine) return tl::unexpected(fine.error());
  const auto& state = client_.inside();
  return as_count(
      blocking(*state, changing(state, name_, counting_down(*state, by, id, options_))));
}

awaitable<std::uint32_t> latch::async_count_down(std::uint32_t by, std::optional<countdown_id> id) {
  if (auto fine = check_count(by, bad_count_down); !fine) {
    return detail::make_refusal<std::uint32_t>(fine.error());
  }
  const auto& state = client_.inside();
  return awaiting(state, changing(state, name_, counting_down(*state, by, id, options_)), as_count);
}

result<std::optional<std::uint32_t>> latch::count() const {
  const auto& state = client_.inside();
  return as_optional_count(blocking(*state, reading_latch(state, name_)));
}

awaitable<std::optional<std::uint32_t>> latch::async_count() const {
  const auto& state = client_.inside();
  return awaiting(state, reading_latch(state, name_), as_optional_count);
}

result<void> latch::wait(const acquire_options& options, std::stop_token token) const {
  const auto& state = client_.inside();
  if (auto fine = latches_usable(*state); !fine) return fine;
  return wait_for<void>(state->runtime, [&](spi::completion<void> done) {
    std::make_shared<latch_wait>(state, spi::resource_id{state->options.name_space, name_},
                                 options.wait, std::move(done))
        ->start(std::move(token));
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
