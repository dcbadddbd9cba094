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
  // The same for a name from outside: answers invalid where the constructor throws it.
  [[nodiscard]] static result<semaphore> make(const client& client, std::string name,
                                              const semaphore_options& options);
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  // Only while no other thread uses either. Permits are leases and stay where they are.
  semaphore(semaphore&& other) noexcept;
  semaphore& operator=(semaphore&& other) noexcept;
  ~semaphore() = default;

  // `permits` at once, all or nothing: one lease. More than max: invalid.
  [[nodiscard]] result<lease> acquire(const acquire_options& options = {},
                                      std::stop_token token = {}, std::uint32_t permits = 1);
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {},
                                  std::uint32_t permits = 1);
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done,
                     std::uint32_t permits = 1);

  // Permits that nobody holds, at some moment during the call; max where nobody holds or waits.
  [[nodiscard]] result<std::uint32_t> available() const;
  [[nodiscard]] awaitable<std::uint32_t> async_available() const;
  // Another max from now on for this object: takes effect at the engine when nobody holds or waits
  // there; until then acquisitions answer conflict. invalid: not 1 to 1,000,000.
  [[nodiscard]] result<void> resize(std::uint32_t max);

  [[nodiscard]] std::uint32_t max() const noexcept { return max_.load(); }
  [[nodiscard]] const std::string& name() const noexcept { return one_.name(); }

  // For the primitives of this library.
  [[nodiscard]] detail::seeker inside(std::uint32_t permits) const;

 private:
  client client_;
  detail::seeker one_;  // permit, of the first max
  std::atomic<std::uint32_t> max_;
};

}  // namespace holdfast
