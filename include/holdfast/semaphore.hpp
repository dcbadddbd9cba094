// At most N holders at a time, across threads, processes and hosts. A permit is a lease: it is renewed,
// ends with its holder, and cannot be released twice.
//
//   holdfast::semaphore api(client, "partner-api", {.max = 8});
//   if (auto permit = api.acquire({.wait = 1s})) call();
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>

namespace holdfast {

struct semaphore_options {
  // Number of permits, 1 to 1,000,000. The first claim fixes it for as long as anyone holds or
  // waits; another number is then refused with conflict, which names both.
  std::uint32_t max = 1;
  lock_options lock{};
};

// Thread-safe.
class semaphore {
 public:
  // Throws lock_error(invalid) as mutex does, and if max is out of its limits.
  semaphore(const client& client, std::string name, const semaphore_options& options);
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<semaphore> make(const client& client, std::string name,
                                              const semaphore_options& options);
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  // Only while no other thread uses either object. Leases are not affected.
  semaphore(semaphore&& other) noexcept;
  semaphore& operator=(semaphore&& other) noexcept;
  ~semaphore() = default;

  // Acquires `permits` at once, all or nothing, as one lease. invalid: more than max.
  [[nodiscard]] result<lease> acquire(const acquire_options& options = {},
                                      std::stop_token token = {}, std::uint32_t permits = 1);
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {},
                                  std::uint32_t permits = 1);
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done,
                     std::uint32_t permits = 1);

  // Permits that nobody held at some moment during the call; max if nobody holds or waits.
  [[nodiscard]] result<std::uint32_t> available() const;
  [[nodiscard]] awaitable<std::uint32_t> async_available() const;
  // Sets max for this object from now on. It takes effect at the engine when nobody holds or waits
  // there; until then acquisitions return conflict. invalid: not 1 to 1,000,000.
  [[nodiscard]] result<void> resize(std::uint32_t max);

  [[nodiscard]] std::uint32_t max() const noexcept { return max_.load(); }
  [[nodiscard]] const std::string& name() const noexcept { return one_.name(); }

  // For the primitives of this library.
  [[nodiscard]] detail::lock_handle inside(std::uint32_t permits) const;

 private:
  client client_;
  detail::lock_handle one_;  // permit, of the first max
  std::atomic<std::uint32_t> max_;
};

}  // namespace holdfast
