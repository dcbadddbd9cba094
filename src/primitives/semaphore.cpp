#include "primitives/lock_handle_inside.hpp"
#include "primitives/operation.hpp"

#include <holdfast/semaphore.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

constexpr std::uint32_t most_permits = 1'000'000;

result<void> check_max(std::uint32_t max) {
  if (max >= 1 && max <= most_permits) return {};
  return failure(errc::invalid, "a semaphore has 1 to 1,000,000 permits");
}

std::uint32_t checked(std::uint32_t max) {
  if (auto fine = check_max(max); !fine) throw lock_error(fine.error());
  return max;
}

}  // namespace

semaphore::semaphore(const client& client, std::string name, const semaphore_options& options)
    : client_(client),
      one_(client, std::move(name), options.lock,
           {.mode = spi::mode::permit, .permits = 1, .max = checked(options.max)}),
      max_(options.max) {}

result<semaphore> semaphore::make(const client& client, std::string name,
                                  const semaphore_options& options) {
  return detail::made([&] { return semaphore(client, std::move(name), options); });
}

semaphore::semaphore(semaphore&& other) noexcept
    : client_(other.client_), one_(other.one_), max_(other.max()) {}

semaphore& semaphore::operator=(semaphore&& other) noexcept {
  client_ = other.client_;
  one_ = other.one_;
  max_.store(other.max());
  return *this;
}

detail::lock_handle semaphore::inside(std::uint32_t permits) const {
  const std::uint32_t all = max();
  if (permits == 1 && all == one_.in().terms.max) return one_;
  return one_.with(permits, all);
}

result<lease> semaphore::acquire(const acquire_options& options, std::stop_token token,
                                 std::uint32_t permits) {
  return inside(permits).acquire(options, std::move(token));
}

acquire_awaitable semaphore::async_acquire(const acquire_options& options, std::stop_token token,
                                           std::uint32_t permits) {
  return inside(permits).async_acquire(options, std::move(token));
}

void semaphore::async_acquire(const acquire_options& options, std::stop_token token,
                              acquire_callback done, std::uint32_t permits) {
  inside(permits).async_acquire(options, std::move(token), std::move(done));
}

namespace {

result<std::uint32_t> free_of(std::uint32_t all, const result<resource_state>& state) {
  if (!state) return tl::unexpected(state.error());
  std::uint64_t held = 0;
  for (const holder& each : state->holders) {
    if (each.mode != lock_mode::permit) {
      return failure(errc::name_conflict, "the name is in use as a lock");
    }
    held += each.permits;
  }
  return static_cast<std::uint32_t>(all - std::min<std::uint64_t>(held, all));
}

detail::verb<std::uint32_t> counting_free(const semaphore& of,
                                          const std::shared_ptr<client::state>& state) {
  return [state, name = of.name(), all = of.max()](spi::completion<std::uint32_t> done) {
    state->inspect(name, [all, done = std::move(done)](const result<resource_state>& seen) mutable {
      done(free_of(all, seen));
    });
  };
}

}  // namespace

result<std::uint32_t> semaphore::available() const {
  const auto& state = client_.inside();
  return detail::call_now<std::uint32_t>(*state->engine, counting_free(*this, state));
}

awaitable<std::uint32_t> semaphore::async_available() const {
  const auto& state = client_.inside();
  return detail::call_soon<std::uint32_t>(state->engine, counting_free(*this, state));
}

result<void> semaphore::resize(std::uint32_t max) {
  if (auto fine = check_max(max); !fine) return fine;
  max_.store(max);
  return {};
}

}  // namespace holdfast
