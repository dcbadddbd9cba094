// A command as it goes over the wire, encoded once, on the caller's thread and outside any lock.
#pragma once

#include "stores/redis/client/reply.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

class command {
 public:
  // The first words of many commands, encoded once; for calls of a script also an argument
  // that all have in common.
  struct opening {
    explicit opening(std::initializer_list<std::string_view> words,
                     std::string_view common_argument = {});

    std::size_t words;  // including the argument
    std::string bytes;
    std::string argument_bytes;
  };

  // Calls of scripts that are merged into one: for each its keys, a letter, and its argument.
  struct calls {
    void add(const command& one, char letter);

    std::size_t keys = 0;
    std::string key_bytes{};
    std::string letters{};
    std::string argument_bytes{};
  };

  // An empty command.
  command() = default;
  // The words: verb and arguments, any bytes.
  explicit command(std::span<const std::string_view> words);
  // A script's call: the opening, the number of keys, the keys, its argument, the arguments.
  command(const opening& start, std::span<const std::string_view> keys,
          std::span<const std::string_view> arguments);
  // All keys, a word of all letters, all arguments.
  command(const opening& start, const calls& all);
  command(std::initializer_list<std::string_view> words)
      : command(std::span(words.begin(), words.size())) {}

  // Sends the other right after this one, with nothing in between (ASKING; WAIT). Its reply is then
  // an array of all replies.
  command& then(const command& next);

  // The same with the first words replaced. Only for a single command.
  [[nodiscard]] command with_start(std::initializer_list<std::string_view> words) const;

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t replies() const noexcept { return replies_; }
  // For a script's call.
  [[nodiscard]] std::size_t argument_count() const noexcept { return arguments_; }
  // The first word of the first command, for messages.
  [[nodiscard]] std::string_view verb() const noexcept;

 private:
  void finish(const char* end);
  [[nodiscard]] std::size_t offset(const char* at) const noexcept {
    return static_cast<std::size_t>(at - bytes_.data());
  }

  std::string bytes_;
  std::uint32_t replies_ = 1;
  // Of a script's call.
  std::size_t keys_ = 0;
  std::size_t arguments_ = 0;
  std::size_t keys_at_ = 0;  // in the bytes
  std::size_t keys_end_ = 0;
  std::size_t arguments_at_ = 0;
};

// A piece of Lua that runs on the server: a function of a library (Redis 7) or a script, called by
// its hash. If the server does not know it (a new master, FUNCTION FLUSH, SCRIPT FLUSH), the
// connection loads it, or sends it in full.

// In the form that FUNCTION LOAD takes. Its name has a version, so that clients of several
// versions can use one server.
struct library {
  std::string text;
};

// Thread-safe, immutable.
class script {
 public:
  // Whether losing one of its writes could give away what somebody holds.
  enum class gives : std::uint8_t { nothing, holds };

  // Another script that executes several calls at once, and the letter that stands for this one.
  struct batching {
    std::shared_ptr<const script> by;  // null: none
    char as;
  };

  // Whether a connection may send a call again by itself, so that a copy may arrive late.
  enum class repeats : std::uint8_t { allowed, forbidden };

  // If it is a function as well.
  struct function {
    std::shared_ptr<const library> of;
    std::string name;
  };

  // `common`: the first argument of every call, or empty.
  explicit script(std::string text, gives what = gives::nothing, batching batched = {},
                  function also = {}, std::string common = {}, repeats again = repeats::allowed);

  // A script with another text, and with another function or none, that is called in the same way.
  [[nodiscard]] script with_text(std::string text, function also = {}) const;

  [[nodiscard]] gives purpose() const noexcept { return purpose_; }
  [[nodiscard]] bool sent_once() const noexcept { return repeats_ == repeats::forbidden; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }  // SHA-1, 40 hex digits
  // null: it is a script only.
  [[nodiscard]] const library* functions() const noexcept { return function_.of.get(); }
  [[nodiscard]] const std::string& function_name() const noexcept { return function_.name; }

  [[nodiscard]] const batching& batched() const noexcept { return batched_; }

  // FCALL if it is a function, else EVALSHA.
  [[nodiscard]] command call(std::span<const std::string_view> keys,
                             std::span<const std::string_view> arguments) const;
  // For several calls that this one executes at once.
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
  repeats repeats_;
  batching batched_;
};

// The server does not know it, and has done nothing.
[[nodiscard]] bool is_unknown_script(const reply& answer) noexcept;

// Digests in hexadecimal digits, by OpenSSL.

[[nodiscard]] std::string sha1_of(std::string_view text);
[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace holdfast::redis
