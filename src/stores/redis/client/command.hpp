// A command as it goes over the wire, encoded once, on the caller's thread and outside any lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

class command {
 public:
  // The first words of many commands, encoded once; of a script's call also an argument that all have.
  struct opening {
    explicit opening(std::initializer_list<std::string_view> words,
                     std::string_view common_argument = {});

    std::string verb;
    std::size_t words;  // with the argument
    std::string bytes;
    std::string argument_bytes;
  };

  // Calls of scripts, to be put into one: of each the keys, a letter, and its argument.
  struct calls {
    void add(const command& one, char letter);

    std::size_t keys = 0;
    std::string key_bytes{};
    std::string letters{};
    std::string argument_bytes{};
  };

  // The words: verb and arguments, any bytes.
  explicit command(std::span<const std::string_view> words);
  // As scripts are called: the opening, the number of keys, the keys, its argument, the arguments.
  command(const opening& start, std::span<const std::string_view> keys,
          std::span<const std::string_view> arguments);
  // All keys, a word of all letters, all arguments.
  command(const opening& start, const calls& all);
  command(std::initializer_list<std::string_view> words)
      : command(std::span(words.begin(), words.size())) {}

  // Sends the other right behind this one, with nothing in between (ASKING; WAIT). Its reply is
  // then an array of all replies.
  command& then(const command& next);

  // The same with other words in the place of the first ones. Only of a single command.
  [[nodiscard]] command with_start(std::initializer_list<std::string_view> words) const;

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t replies() const noexcept { return replies_; }
  // Of a script's call.
  [[nodiscard]] std::size_t argument_count() const noexcept { return arguments_; }
  [[nodiscard]] const std::string& verb() const noexcept { return verb_; }

 private:
  command() = default;
  void finish(const char* end);
  [[nodiscard]] std::size_t offset(const char* at) const noexcept {
    return static_cast<std::size_t>(at - bytes_.data());
  }

  std::string verb_;  // of the first, for messages
  std::string bytes_;
  std::uint32_t replies_ = 1;
  // Of a script's call.
  std::size_t keys_ = 0;
  std::size_t arguments_ = 0;
  std::size_t keys_at_ = 0;  // in the bytes
  std::size_t keys_end_ = 0;
  std::size_t arguments_at_ = 0;
};

}  // namespace holdfast::redis
