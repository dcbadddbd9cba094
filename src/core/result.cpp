#include <holdfast/result.hpp>

#include <array>
#include <cstddef>
#include <optional>

namespace holdfast {

namespace {

std::optional<std::errc> counterpart(errc code) noexcept {
  switch (code) {
    case errc::busy:
      return std::errc::device_or_resource_busy;
    case errc::timed_out:
      return std::errc::timed_out;
    case errc::cancelled:
      return std::errc::operation_canceled;
    case errc::not_held:
      return std::errc::operation_not_permitted;  // as pthread_mutex_unlock
    case errc::would_deadlock:
      return std::errc::resource_deadlock_would_occur;
    case errc::unavailable:
      return std::errc::io_error;
    case errc::denied:
      return std::errc::permission_denied;
    case errc::overloaded:
      return std::errc::resource_unavailable_try_again;  // as pthread_mutex_lock, too deep
    case errc::unsupported:
      return std::errc::not_supported;
    case errc::invalid:
      return std::errc::invalid_argument;
    case errc::lost:
    case errc::conflict:
    case errc::name_conflict:
      break;
  }
  return std::nullopt;
}

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "holdfast"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string(describe(static_cast<errc>(code)));
  }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    const auto same = counterpart(static_cast<errc>(code));
    return same ? std::make_error_condition(*same) : std::error_condition(code, *this);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category one;
  return one;
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::string_view describe(errc code) noexcept {
  // In the order of the enumerators, which begin with 1.
  static constexpr std::array<std::string_view, static_cast<std::size_t>(errc::invalid)> words{
      "busy",           "timed out",   "cancelled", "lost",     "not held",
      "would deadlock", "unavailable", "denied",    "conflict", "name conflict",
      "overloaded",     "unsupported", "invalid"};
  const auto index = static_cast<std::size_t>(code) - 1;
  return index < words.size() ? words[index] : "unknown error";
}

std::string error::message() const {
  std::string text(describe(code));
  if (!detail.empty()) text += " (" + detail + ")";
  return text;
}

lock_error::lock_error(const error& cause)
    : std::system_error(make_error_code(cause.code)),
      text_(cause.message()),
      cause_(std::make_shared<const error>(cause)) {}

void detail::throw_lock_error(const error& cause) { throw lock_error(cause); }

}  // namespace holdfast
