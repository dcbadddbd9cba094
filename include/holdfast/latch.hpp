// A count-down latch across processes and hosts: many wait until a count has gone down to zero.
//
//   holdfast::latch start(client, "start");
//   start.set(3);            // one of the processes
//   start.count_down();      // each of three workers, once ready
//   start.wait();            // everybody; may begin before set()
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

struct latch_options {
  // How long it is kept after its last change, even at zero: 1 s to 30 days.
  duration life = std::chrono::hours(24);
};

// Identifies one count-down, so that it counts once, however often it is sent.
struct countdown_id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // From any text: for a count-down that several attempts of one job share.
  static countdown_id from(std::string_view text) noexcept;
};

// Thread-safe; cheap to make.
class latch {
 public:
  // Throws lock_error(invalid) for a bad name or option. Sends nothing.
  latch(const client& client, std::string name, const latch_options& options = {});
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<latch> make(const client& client, std::string name,
                                          const latch_options& options = {});

  // Sets the count, 1 to 1,000,000. conflict: it is set and not at zero. Each of these calls takes at
  // most 10 s, then unavailable; until then, unanswered requests are repeated under the same id.
  [[nodiscard]] result<void> set(std::uint32_t count);
  awaitable<void> async_set(std::uint32_t count);
  // Returns the new count; never below zero. not_held: the latch is unset. Without an id each call
  // counts, but only once, however often it had to be sent.
  [[nodiscard]] result<std::uint32_t> count_down(std::uint32_t by = 1,
                                                 std::optional<countdown_id> id = std::nullopt);
  awaitable<std::uint32_t> async_count_down(std::uint32_t by = 1,
                                            std::optional<countdown_id> id = std::nullopt);
  // std::nullopt: unset.
  [[nodiscard]] result<std::optional<std::uint32_t>> count() const;
  [[nodiscard]] awaitable<std::optional<std::uint32_t>> async_count() const;

  // Waits until the count is zero; an unset latch is waited for, too. timed_out (also if wait is
  // zero), cancelled, unavailable: no answer until the end of the wait.
  [[nodiscard]] result<void> wait(const acquire_options& options = {},
                                  std::stop_token token = {}) const;
  [[nodiscard]] awaitable<void> async_wait(const acquire_options& options = {},
                                           std::stop_token token = {}) const;
  // Calls done once, on the client's executor.
  void async_wait(const acquire_options& options, std::stop_token token,
                  move_only_function<void(result<void>)> done) const;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  client client_;
  std::string name_;
  latch_options options_;
};

}  // namespace holdfast
