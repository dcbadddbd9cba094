#include <holdfast/result.hpp>

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
  switch (code) {
    case errc::busy:
      return "busy";
    case errc::timed_out:
      return "timed out";
    case errc::cancelled:
      return "cancelled";
    case errc::lost:
      return "lost";
    case errc::not_held:
      return "not held";
    case errc::would_deadlock:
      return "would deadlock";
    case errc::unavailable:
      return "unavailable";
    case errc::denied:
      return "denied";
    case errc::conflict:
      return "conflict";
    case errc::name_conflict:
      return "name conflict";
    case errc::overloaded:
      return "overloaded";
    case errc::unsupported:
      return "unsupported";
    case errc::invalid:
      return "invalid";
  }
  return "unknown error";
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
