// holdfast demo flash-sale: what a lock is for, with figures.
#include "cli/commands.hpp"
#include "cli/connection.hpp"
#include "cli/demo/sale.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

// Gone with its owner.
class temporary_folder {
 public:
  temporary_folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base == '/' ? base : "/tmp") + "/holdfast-sale-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::system_error(errno, std::system_category(), path_);
    }
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

std::string with_digits(double value, int digits) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string milliseconds(duration span) {
  return with_digits(std::chrono::duration<double, std::milli>(span).count(), 1) + " ms";
}

std::vector<std::string> row(const sale_result& result, const sale_arguments& how) {
  const bool locked = result.lock != "none";
  return {result.lock,
          std::to_string(result.sold()),
          std::to_string(result.orders),
          std::to_string(result.left),
          std::to_string(result.oversold()),
          std::to_string(result.too_busy),
          locked ? milliseconds(result.p50) : "-",
          locked ? milliseconds(result.p99) : "-",
          with_digits(result.per_second, 0),
          result.exact(how) ? "exact" : "WRONG"};
}

std::string heading(const sale_arguments& how, const address& to) {
  return std::to_string(how.buyers) + " buyers in " + std::to_string(how.processes) +
         " processes, " + std::to_string(how.stock) + " items; engine: " + to.engine + "\n\n";
}

outcome<address> engine_for(const context& context, const temporary_folder& folder) {
  const bool named = context.global.url || (context.taken.url && !context.taken.url->empty());
  if (named) return find_address(context);
  return address{.url = "sqlite:" + in_url(folder.path()) + "/locks.db", .engine = "sqlite"};
}

int conclude(const std::vector<sale_result>& results, const sale_arguments& how) {
  bool exact = true;
  for (const sale_result& result : results) {
    if (result.lock == "none") continue;
    exact = exact && result.exact(how);
  }
  if (exact) return exit_code::ok;
  tell("a sale with a lock was not exact (see the table)");
  return exit_code::no;
}

}  // namespace

int flash_sale(const context& context, const sale_arguments& how) {
  const temporary_folder folder;
  const auto to = engine_for(context, folder);
  if (!to) return tell(to.error());
  signal_inbox inbox;
  std::vector<sale_result> results;
  std::vector<std::vector<std::string>> rows{{"lock", "sold", "orders", "stock left", "oversold",
                                              "too busy", "wait p50", "wait p99", "sales/s", ""}};
  for (const std::string& lock : how.locks) {
    const std::string place = folder.path() + "/" + lock;
    fs::create_directory(place);
    sale_result result = hold_one_sale(context, *to, how, lock, place, inbox);
    if (result.ended_by != 0) {
      tell("the demo was ended by " + signal_name(result.ended_by));
      return exit_code::signalled + result.ended_by;
    }
    if (result.failed > 0) {
      const std::string why = result.trouble.empty() ? "a process ended" : result.trouble;
      return tell({exit_code::engine,
                   "the sale with lock " + lock + " failed (" + to->engine + ", " + why + ")"});
    }
    rows.push_back(row(result, how));
    results.push_back(std::move(result));
  }
  const int printed = print_all(heading(how, *to) + columns(rows, {1, 2, 3, 4, 5, 6, 7, 8}));
  const int concluded = conclude(results, how);
  return concluded != exit_code::ok ? concluded : printed;
}

}  // namespace holdfast::cli
