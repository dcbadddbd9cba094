// The answers and pushes of the stored functions, as words: "g FENCE TTL AT OFFER WANTED".
// Parsed here, for all engines that have those functions; docs/formats/sql.md has the list.
// Times on the wire are microseconds.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sql {

// The rows of an answer, each a line of words.
using rows = std::vector<std::string>;

// Splits a line of words.
//
// Not thread-safe. What is missing or no number is noted, and asked for once at the end.
class words {
 public:
  explicit words(std::string_view line) : rest_(line) {}

  std::string_view word() {
    if (rest_.empty()) fine_ = false;
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view first = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return first;
  }
  template <class Number = std::int64_t>
  Number number() {
    const std::string_view text = word();
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) fine_ = false;
    return value;
  }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  [[nodiscard]] bool fine() const noexcept { return fine_; }
  void spoil() noexcept { fine_ = false; }

 private:
  std::string_view rest_;
  bool fine_ = true;
};

// Microseconds, rounded up: what is waited for must not come early.
std::int64_t microseconds(duration time) noexcept;

// Each: unavailable if the words are unexpected (another version, a foreign function).
// `asked`: the requested ttl. A grant that has only its fence is for that long, and the fence
// is the time of the grant.
result<spi::outcome> to_outcome(const rows& answer, std::optional<duration> asked = std::nullopt);
result<spi::granted> to_granted(const rows& answer);
result<spi::departure> to_departure(const rows& answer);
result<std::vector<spi::renewal>> to_renewals(const rows& answer, std::size_t count);
result<spi::resource_state> to_state(const rows& answer);
result<std::vector<spi::holder>> to_holders(const rows& answer);
result<std::vector<spi::resource_summary>> to_summaries(const rows& answer);
result<spi::latch_state> to_latch(const rows& answer);

// The claim has no place at the server: neither held nor waiting, and
// nothing will be pushed for it.
bool is_turned_away(const result<spi::outcome>& answer) noexcept;

// For locks in a caller's own transaction. invalid: out of its limits.
result<void> check_lock(const std::string& name, const std::string& space);
// g FENCE, or b: another transaction has it.
result<fence_token> to_transaction_fence(const std::string& answer, duration wait);

// For a claim; else for observers of a resource, or, without an event, for waiters for its latch.
struct notification {
  std::optional<stores::push> push;
  std::string key{};
  std::optional<spi::store_event> event{};
};

// Nothing: not one of ours.
std::optional<notification> to_notification(std::string_view message);

}  // namespace holdfast::sql
