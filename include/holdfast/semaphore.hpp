// N of M permits, across threads, processes and hosts. A permit is a lease: it is renewed, ends with
// its holder, and cannot be given back twice.
//
//   holdfast::semaphore api(client, "partner-api", {.max = 8});
//   if (auto permit = api.acquire({.wait = 1s})) call();
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/seeker.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>

namespace holdfast {

struct semaphore_options {
  // How many there are, 1 to 1,000,000. The first claim fixes it while anybody holds or waits;
  // another number then is conflict, naming both.
  std::uint32_t max = 1;
  lock_options lock{};
};

// Thread-safe.
class semaphore {
 public:
  // Throws lock_error(invalid) as mutex does, and where max is out of its limits.
  semaphore(const client& client, std::string name, const semaphore_options& options);

  // `permits` at once, all or nothing: one lease. More than max: invalid.
  result<lease> acquire(const acquire_options& options = {}, std::stop_token token = {},
                        std::uint32_t permits = 1);
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {},
                                  std::uint32_t permits = 1);
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done,
                     std::uint32_t permits = 1);

  // Permits that nobody holds, at some moment during the call; max where nobody holds or waits.
  [[nodiscard]] result<std::uint32_t> available() const;
  // Another max from now on for this object: takes effect at the engine when nobody holds or waits
  // there; until then acquisitions answer conflict. invalid: not 1 to 1,000,000.
  result<void> resize(std::uint32_t max);

  [[nodiscard]] std::uint32_t max() const noexcept { return max_.load(); }
  [[nodiscard]] const std::string& name() const noexcept { return one_.name(); }

 private:
  [[nodiscard]] detail::seeker seeking(std::uint32_t permits) const;

  client client_;
  const detail::seeker one_;  // permit, of the first max
  std::atomic<std::uint32_t> max_;
};

}  // namespace holdfast
