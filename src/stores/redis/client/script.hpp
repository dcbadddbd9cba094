// A Lua script, sent in full once per connection and called by its hash from then on; in full again
// where the server does not know it any more (SCRIPT FLUSH).
#pragma once

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/connection.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

// Thread-safe, immutable.
class script {
 public:
  // Whether a lost write of it would give away what somebody holds.
  enum class gives : std::uint8_t { nothing, holds };

  // Another script that does the common cases of several calls at once, and the letter by which it knows this one.
  struct bundling {
    std::shared_ptr<const script> by;  // null: none does
    char as;
  };

  explicit script(std::string text, gives what = gives::nothing, bundling bundled = {});

  [[nodiscard]] gives purpose() const noexcept { return purpose_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }  // SHA-1, 40 hex digits

  [[nodiscard]] const bundling& bundled() const noexcept { return bundled_; }

  // EVALSHA.
  [[nodiscard]] command by_hash(std::span<const std::string_view> keys,
                                std::span<const std::string_view> arguments) const;
  // Of several calls that are bundled by this one.
  [[nodiscard]] command by_hash(const command::calls& all) const;
  // EVAL, with the keys and arguments of a command that by_hash() made.
  [[nodiscard]] command in_full(const command& made) const;
  [[nodiscard]] command load() const;  // SCRIPT LOAD

 private:
  std::string text_;
  std::string hash_;
  command::opening by_hash_;
  gives purpose_;
  bundling bundled_;
};

// Calls it, and once more in full if the server answers NOSCRIPT: connection::call().
void run_script(const std::shared_ptr<connection>& with, const script& what,
                std::span<const std::string_view> keys, std::span<const std::string_view> arguments,
                const net::patience& until, spi::completion<reply> done);

}  // namespace holdfast::redis
