// What a call returns when it cannot do what was asked. Outcomes and failures are values of
// result<T>; only the std face (lock, try_lock, ...), constructors with a bad argument, and
// result<T>::value() throw, always a lock_error.
#pragma once

#include <tl/expected.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace holdfast {

// Stable numbers: they may be logged and compared across versions.
enum class errc {
  busy = 1,            // wait was zero and the lock was not free
  timed_out = 2,       // not granted within the wait
  cancelled = 3,       // stop token, client closed, or a forked child
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

// Its codes compare equal to std::errc where the standard has the same thing: device_or_resource_busy,
// timed_out, operation_canceled, operation_not_permitted (not_held), resource_deadlock_would_occur,
// io_error (unavailable), permission_denied, resource_unavailable_try_again (overloaded), not_supported,
// invalid_argument. lost, conflict and name_conflict have no counterpart.
const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

// The sentence for a code, without detail: "timed out".
std::string_view describe(errc code) noexcept;

// A code to decide on and a detail to read: engine, operation, answer. Never holds a secret.
struct error {
  errc code = errc::unavailable;
  std::string detail;
  // With unavailable: no connection could be made, so nothing was sent and nothing can have happened.
  bool unsent = false;

  // "timed out (memory, attempt, held by host:17:backup)"
  [[nodiscard]] std::string message() const;

  friend bool operator==(const error& left, errc right) noexcept { return left.code == right; }
  friend bool operator==(const error& left, const error& right) = default;
};

// What the std face throws, and result<T>::value() on an error.
class lock_error : public std::system_error {
 public:
  explicit lock_error(const error& cause);

  // The same text as cause().message().
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }
  [[nodiscard]] const error& cause() const noexcept { return *cause_; }  // code and detail

 private:
  std::runtime_error text_;  // copied without throwing, as an exception must be
  std::shared_ptr<const error> cause_;
};

namespace detail {
[[noreturn]] void throw_lock_error(const error& cause);
}

// A value or an error. Based on tl::expected whatever the language level of the program, so that all
// translation units of a program agree on it, and with its interface; but a result that is dropped
// is a warning, and value() on an error throws lock_error with the whole message.
template <class T>
class [[nodiscard]] result : public tl::expected<T, error> {
  using base = tl::expected<T, error>;
  template <class U>
  static constexpr bool is_other = !std::is_same_v<std::remove_cvref_t<U>, result>;

 public:
  constexpr result() = default;
  // From a value, from failure() or tl::unexpected, and from another expected.
  template <class U = T>
  requires(is_other<U>&& std::is_constructible_v<base, U&&>)  //
      constexpr explicit(!std::is_convertible_v<U&&, base>) result(U&& from)
      : base(std::forward<U>(from)) {}

  template <class U>
  requires(is_other<U>&& std::is_assignable_v<base&, U&&>) constexpr result& operator=(U&& from) {
    base::operator=(std::forward<U>(from));
    return *this;
  }

  template <class U = T>
  requires(!std::is_void_v<U>) constexpr U& value() & {
    check();
    return **this;
  }
  template <class U = T>
  requires(!std::is_void_v<U>) constexpr const U& value() const& {
    check();
    return **this;
  }
  template <class U = T>
  requires(!std::is_void_v<U>) constexpr U&& value() && {
    check();
    return *std::move(*this);
  }
  constexpr void value() const requires(std::is_void_v<T>) { check(); }

  // With a result, or with a value. A template, so that nothing is converted to a result; better than
  // tl's own, which would be ambiguous for a derived class.
  template <class U>
  friend constexpr bool operator==(const result& left, const U& right) {
    if constexpr (!std::is_same_v<U, result>) {
      return left.has_value() && *left == right;
    } else if constexpr (std::is_void_v<T>) {
      return left.has_value() ? right.has_value() : !right && left.error() == right.error();
    } else {
      if (left.has_value() != right.has_value()) return false;
      return left.has_value() ? *left == *right : left.error() == right.error();
    }
  }

 private:
  constexpr void check() const {
    if (!this->has_value()) detail::throw_lock_error(this->error());
  }
};

inline tl::unexpected<error> failure(errc code, std::string detail = {}) {
  return tl::unexpected<error>(error{code, std::move(detail)});
}

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
