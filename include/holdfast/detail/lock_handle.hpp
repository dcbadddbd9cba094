// What the primitives share: a name on a client, how it is claimed, and the three ways to acquire
// it: blocking, by callback, by co_await.
#pragma once

#include <holdfast/awaitable.hpp>
#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

using acquire_callback = move_only_function<void(result<lease>)>;

// What async_acquire() returns.
using acquire_awaitable = awaitable<lease>;

namespace detail {

struct lock_handle_terms {
  spi::mode mode = spi::mode::exclusive;
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
  std::string payload{};  // empty: the client's
  spi::role role = spi::role::lock;
};

// Thread-safe; cheap to copy. Throws lock_error(invalid) when made with a bad name or bad options.
class lock_handle {
 public:
  lock_handle(const client& client, std::string name, const lock_options& options,
              lock_handle_terms terms = {});
  // A move copies, too: there is no empty handle.
  lock_handle(const lock_handle&) noexcept = default;
  lock_handle& operator=(const lock_handle&) noexcept = default;
  ~lock_handle() = default;

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
  [[nodiscard]] lock_handle with(std::uint32_t permits, std::uint32_t max) const;

 private:
  explicit lock_handle(std::shared_ptr<const inside> made) noexcept : inside_(std::move(made)) {}

  std::shared_ptr<const inside> inside_;
};

}  // namespace detail

}  // namespace holdfast
