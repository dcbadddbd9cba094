// See the header.
#include "stores/redis/client/command.hpp"

#include <array>
#include <charconv>
#include <cstddef>

namespace holdfast::redis {

namespace {

void append_count(std::string& to, char sign, std::size_t count) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), count).ptr;
  to += sign;
  to.append(digits.data(), end);
  to += "\r\n";
}

void append_word(std::string& to, std::string_view word) {
  append_count(to, '$', word.size());
  to += word;
  to += "\r\n";
}

// Behind the line that begins at `at`.
std::size_t next_line(std::string_view bytes, std::size_t at) { return bytes.find("\r\n", at) + 2; }

}  // namespace

command::command(std::span<const std::string_view> words)
    : verb_(words.empty() ? std::string_view() : words.front()) {
  constexpr std::size_t frame = 16;  // around each word, at most about this
  std::size_t size = frame;
  for (const std::string_view word : words) size += word.size() + frame;
  bytes_.reserve(size);
  append_count(bytes_, '*', words.size());
  for (const std::string_view word : words) append_word(bytes_, word);
}

command command::with_start(std::initializer_list<std::string_view> words) const {
  command made;
  if (words.size() > 0) made.verb_ = *words.begin();
  std::size_t at = next_line(bytes_, 0);
  made.bytes_ = bytes_.substr(0, at);
  for (const std::string_view word : words) {
    append_word(made.bytes_, word);
    // Words are skipped by their announced length: they may hold line ends.
    std::size_t size = 0;
    std::from_chars(bytes_.data() + at + 1, bytes_.data() + bytes_.size(), size);
    at = next_line(bytes_, at) + size + 2;
  }
  made.bytes_.append(bytes_, at);
  return made;
}

command& command::then(const command& next) {
  bytes_ += next.bytes_;
  replies_ += next.replies_;
  return *this;
}

}  // namespace holdfast::redis
