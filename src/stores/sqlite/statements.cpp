#include "stores/sqlite/statements.hpp"

#include <string>

namespace holdfast::sqlite {

namespace {

constexpr std::string_view all =
#include "stores/sqlite/statements.sql.inc"
    ;
constexpr std::string_view mark = "-- name: ";

}  // namespace

std::string_view statement_text(std::string_view name) noexcept {
  for (std::size_t at = all.find(mark); at != std::string_view::npos; at = all.find(mark, at + 1)) {
    const std::size_t end_of_name = all.find('\n', at);
    if (all.substr(at + mark.size(), end_of_name - at - mark.size()) != name) continue;
    const std::size_t end = all.find(mark, end_of_name);
    return all.substr(end_of_name + 1, end == std::string_view::npos ? end : end - end_of_name - 1);
  }
  return {};
}

}  // namespace holdfast::sqlite
