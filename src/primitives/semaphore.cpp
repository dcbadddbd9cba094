#include "primitives/seeker_inside.hpp"

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

detail::seeker semaphore::seeking(std::uint32_t permits) const {
  const std::uint32_t all = max();
  if (permits == 1 && all == one_.in().terms.max) return one_;
  return one_.with(permits, all);
}

result<lease> semaphore::acquire(const acquire_options& options, std::stop_token token,
                                 std::uint32_t permits) {
  return seeking(permits).acquire(options, std::move(token));
}

acquire_awaitable semaphore::async_acquire(const acquire_options& options, std::stop_token token,
                                           std::uint32_t permits) {
  return seeking(permits).async_acquire(options, std::move(token));
}

void semaphore::async_acquire(const acquire_options& options, std::stop_token token,
                              acquire_callback done, std::uint32_t permits) {
  seeking(permits).async_acquire(options, std::move(token), std::move(done));
}

result<std::uint32_t> semaphore::available() const {
  const auto state = client_.inspect(name());
  if (!state) return tl::unexpected(state.error());
  std::uint64_t held = 0;
  for (const spi::holder& each : state->holders) {
    if (each.mode != spi::mode::permit) {
      return failure(errc::name_conflict, "the name is in use as a lock");
    }
    held += each.permits;
  }
  const std::uint32_t all = max();
  return static_cast<std::uint32_t>(all - std::min<std::uint64_t>(held, all));
}

result<void> semaphore::resize(std::uint32_t max) {
  if (auto fine = check_max(max); !fine) return fine;
  max_.store(max);
  return {};
}

}  // namespace holdfast
