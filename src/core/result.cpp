#include <holdfast/result.hpp>

namespace holdfast {

namespace {

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "holdfast"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string(describe(static_cast<errc>(code)));
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
    : std::system_error(make_error_code(cause.code), cause.detail) {}

}  // namespace holdfast
