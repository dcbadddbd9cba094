// A reply of a Redis server: a value of RESP2.
#pragma once

#include <holdfast/result.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast::redis {

struct reply {
  enum class type : std::uint8_t { nil, status, error, integer, string, array };

  type kind = type::nil;
  bool repeated = false;  // the command was sent more than once: another copy may be executed later
  std::int64_t integer = 0;
  std::string text;  // of a status, an error (without '-') or a string
  std::vector<reply> elements;

  [[nodiscard]] bool is(type which) const noexcept { return kind == which; }
  [[nodiscard]] bool is_error() const noexcept { return kind == type::error; }
  // The first word of an error: "NOSCRIPT".
  [[nodiscard]] bool is_error(std::string_view code) const noexcept {
    return is_error() && text.starts_with(code) &&
           (text.size() == code.size() || text[code.size()] == ' ');
  }
  // Text of a status or a string; else empty.
  [[nodiscard]] std::string_view words() const noexcept {
    return kind == type::status || kind == type::string ? std::string_view(text)
                                                        : std::string_view();
  }

  friend bool operator==(const reply&, const reply&) = default;
};

// How large a reply may be.
struct reader_limits {
  std::size_t elements = 1'000'000;                   // in one reply, all arrays together
  std::size_t bytes = std::size_t{64} * 1024 * 1024;  // of one reply
  std::size_t line = std::size_t{64} * 1024;          // of a status, an error, a length
  std::size_t depth = 7;                              // of arrays in arrays
};

// Bytes into replies, by hiredis's parser with creators of our own that set limits: a server, or an
// impostor, must not be able to exhaust our memory by announcing a size.

// Not thread-safe. The result does not depend on how the bytes are split into pieces.
class reply_reader {
 public:
  explicit reply_reader(reader_limits limits = {});
  ~reply_reader();
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  // Appends the replies that these bytes complete. unavailable: not RESP2, or beyond a limit; the
  // replies before it were appended, and the reader answers the same from then on.
  result<void> feed(std::string_view bytes, std::vector<reply>& into);

 private:
  struct parser;

  std::unique_ptr<parser> parser_;
};

// A whole text as a number, or nothing.
template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What an error reply means: is it worth retrying, is it our fault, is it a matter of topology?

enum class trouble : std::uint8_t {
  passing,       // the server cannot now: loading, busy, failing over, out of memory or disk
  demoted,       // it is a replica (READONLY): find the master
  denied,        // no permission, or wrong credentials
  moved,         // the slot is elsewhere (MOVED)
  ask,           // this one time ask another node (ASK)
  no_script,     // use EVAL
  wrong_type,    // a foreign value under our key
  unknown_verb,  // too old, renamed, or a proxy
  other,         // a fault of ours, or a script's own
};

trouble classify(const reply& answer) noexcept;

// Whether it is, or contains, an error that says that the server is a replica.
bool says_demoted(const reply& answer) noexcept;

// The permissions that the store needs, for the message of a refusal.
struct grants {
  std::string keys;      // "~holdfast:*"
  std::string channels;  // "&holdfast:*"
};

// passing and demoted are unavailable, denied says what to grant, a wrong type is name_conflict, an
// unknown verb unsupported; the rest is unavailable too, as its outcome is unknown. `where`: the
// server. Messages that repeat arguments, which include secrets, are cut off before them.
error to_error(const reply& answer, std::string_view verb, std::string_view where,
               const grants& wanted = {});

}  // namespace holdfast::redis
