// The checks of `doctor` that all SQL servers share, and the facts that they use.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/options.hpp"

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::sql {

// The rows of examine.sql.inc: a word and its value per line. Thread-safe: constant.
class facts {
 public:
  explicit facts(const rows& answer);

  // "?" if it is missing.
  [[nodiscard]] std::string text(std::string_view key) const;
  // 0 if it is missing or not a number.
  [[nodiscard]] long number(std::string_view key) const;
  [[nodiscard]] bool is_off(std::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> known_;
};

// Of connections; `wanted`: by one client, at most.
spi::check room(const facts& known, std::size_t wanted);
// What it means that the holds of these strategies end with connections.
spi::check bound_check(strategy which);
spi::check tls_check(bool encrypted);
// `hears`: wake-ups arrive, by `means`.
spi::check wakeup_check(bool hears, std::string means);

}  // namespace holdfast::sql
