// A piece of Lua that runs on the server: a function of a library (Redis 7) or a script, called by its hash. Where the
// server does not know it (a new master, FUNCTION FLUSH, SCRIPT FLUSH), the connection loads it, or sends it in full.
#pragma once

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

// As FUNCTION LOAD takes it. Its name has a version, so that clients of several versions can use one server.
struct library {
  std::string text;
};

// Thread-safe, immutable.
class script {
 public:
  // Whether a lost write of it would give away what somebody holds.
  enum class gives : std::uint8_t { nothing, holds };

  // Another script that does several calls at once, and the letter by which it knows this one.
  struct batching {
    std::shared_ptr<const script> by;  // null: none does
    char as;
  };

  // Where it is a function as well.
  struct function {
    std::shared_ptr<const library> of;
    std::string name;
  };

  // `common`: the first argument of every call, or empty.
  explicit script(std::string text, gives what = gives::nothing, batching batched = {},
                  function also = {}, std::string common = {});

  // A script with another text, and no function or another one, that is called alike.
  [[nodiscard]] script with_text(std::string text, function also = {}) const;

  [[nodiscard]] gives purpose() const noexcept { return purpose_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }  // SHA-1, 40 hex digits
  // null: it is a script only.
  [[nodiscard]] const library* functions() const noexcept { return function_.of.get(); }
  [[nodiscard]] const std::string& function_name() const noexcept { return function_.name; }

  [[nodiscard]] const batching& batched() const noexcept { return batched_; }

  // FCALL where it is a function, else EVALSHA.
  [[nodiscard]] command call(std::span<const std::string_view> keys,
                             std::span<const std::string_view> arguments) const;
  // Of several calls that this one does at once.
  [[nodiscard]] command call(const command::calls& all) const;
  // EVALSHA and EVAL, with the keys and arguments of a command that call() made.
  [[nodiscard]] command by_hash(const command& made) const;
  [[nodiscard]] command in_full(const command& made) const;

 private:
  std::string text_;
  std::string hash_;
  function function_;
  std::string common_;
  command::opening start_;
  gives purpose_;
  batching batched_;
};

// The server does not know it, and has done nothing.
[[nodiscard]] bool is_unknown_script(const reply& answer) noexcept;

}  // namespace holdfast::redis
