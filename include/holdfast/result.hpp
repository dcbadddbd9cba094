// What a call answers when it cannot do what was asked. Outcomes and failures are values of
// result<T>; only the std face (lock, ...) and constructors given a wrong argument throw: a lock_error.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace holdfast {

// Stable numbers: they may be logged and compared across versions.
enum class errc {
  busy = 1,            // wait was zero and the lock was not free
  timed_out = 2,       // not granted within the wait
  cancelled = 3,       // stop token, client closed, or the process is a fork of the client's
  lost = 4,            // the lease had ended before
  not_held = 5,        // nothing of ours to release or change
  would_deadlock = 6,  // this thread holds it already, or two upgrades wait for each other
  unavailable = 7,     // no usable answer: the outcome is unknown and is resolved in the background
  denied = 8,          // the engine refuses us; the detail says what to grant
  conflict = 9,        // same name, other parameters (a semaphore's max, a live latch)
  name_conflict = 10,  // something else lives under this name; it is never overwritten
  overloaded = 11,     // a named limit is reached
  unsupported = 12,    // this engine cannot do it; the detail says why
  invalid = 13,        // an argument out of its limits
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

// The sentence for a code, without detail: "timed out".
std::string_view describe(errc code) noexcept;

// A code to decide on and a detail to read: engine, operation, answer. Never holds a secret.
struct error {
  errc code = errc::unavailable;
  std::string detail;

  // "timed out (memory, attempt, held by host:17:backup)"
  [[nodiscard]] std::string message() const;

  friend bool operator==(const error& left, errc right) noexcept { return left.code == right; }
  friend bool operator==(const error& left, const error& right) = default;
};

// Always tl::expected, whatever the language level of the program, so that all translation units of
// a program agree on it.
template <class T>
using result = tl::expected<T, error>;

inline tl::unexpected<error> failure(errc code, std::string detail = {}) {
  return tl::unexpected<error>(error{code, std::move(detail)});
}

// What the std face throws.
class lock_error : public std::system_error {
 public:
  explicit lock_error(const error& cause);
};

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
