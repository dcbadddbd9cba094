#include "stores/payload.hpp"

#include "core/names.hpp"

#include <charconv>

namespace holdfast::stores {

namespace {

constexpr std::string_view terms_version = "holdfast/1 permits=";
constexpr std::string_view middle = " max=";

std::optional<std::uint32_t> take_number(std::string_view& from) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  from.remove_prefix(static_cast<std::size_t>(end - from.data()));
  return value;
}

}  // namespace

std::string data_of(const std::string& payload, const permits_data& terms) {
  return payload + "\n" + std::string(terms_version) + std::to_string(terms.permits) +
         std::string(middle) + std::to_string(terms.max);
}

std::string payload_in(std::string_view data) {
  return core::clean_payload(data.substr(0, data.find('\n')));
}

std::optional<permits_data> permits_in(std::string_view data) {
  const auto line = data.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::string_view rest = data.substr(line + 1);
  if (!rest.starts_with(terms_version)) return std::nullopt;
  rest.remove_prefix(terms_version.size());
  const auto permits = take_number(rest);
  if (!permits || !rest.starts_with(middle)) return std::nullopt;
  rest.remove_prefix(middle.size());
  const auto max = take_number(rest);
  if (!max) return std::nullopt;
  return permits_data{*permits, *max};
}

}  // namespace holdfast::stores
