// What the primitives share: a name on a client, how it is claimed, and the three ways to acquire
// it: blocking, by callback, by co_await.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

using acquire_callback = spi::function<void(result<lease>)>;

namespace detail {

// One asynchronous acquisition in progress. Thread-safe.
class pursuit;

struct seeker_terms {
  spi::mode mode = spi::mode::exclusive;
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
  std::string payload{};  // empty: the client's
  spi::role role = spi::role::lock;
};

}  // namespace detail

// What async_acquire() returns: to be awaited once, in a coroutine of any type. Starts when awaited.
// Destroying the coroutine while it waits cancels the acquisition; a grant that nobody takes is
// given back. Resumes on the client's executor.
class [[nodiscard]] acquire_awaitable {
 public:
  explicit acquire_awaitable(std::shared_ptr<detail::pursuit> pursuit) noexcept;
  acquire_awaitable(acquire_awaitable&&) noexcept = default;
  acquire_awaitable& operator=(acquire_awaitable&&) = delete;
  acquire_awaitable(const acquire_awaitable&) = delete;
  acquire_awaitable& operator=(const acquire_awaitable&) = delete;
  ~acquire_awaitable();

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting);
  result<lease> await_resume();

 private:
  std::shared_ptr<detail::pursuit> pursuit_;
  std::optional<result<lease>> answer_;
};

namespace detail {

// Thread-safe; cheap to copy. Throws lock_error(invalid) when made of a bad name or bad options.
class seeker {
 public:
  seeker(const client& client, std::string name, const lock_options& options,
         seeker_terms terms = {});

  result<lease> acquire(const acquire_options& options, std::stop_token token) const;
  void async_acquire(const acquire_options& options, std::stop_token token,
                     acquire_callback done) const;
  [[nodiscard]] acquire_awaitable async_acquire(const acquire_options& options,
                                                std::stop_token token) const;

  struct inside;
  [[nodiscard]] const inside& in() const noexcept { return *inside_; }
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const lock_options& options() const noexcept;
  // The same name with another number of permits; limits are checked when acquiring.
  [[nodiscard]] seeker with(std::uint32_t permits, std::uint32_t max) const;

 private:
  explicit seeker(std::shared_ptr<const inside> made) noexcept : inside_(std::move(made)) {}

  std::shared_ptr<const inside> inside_;
};

}  // namespace detail

}  // namespace holdfast
