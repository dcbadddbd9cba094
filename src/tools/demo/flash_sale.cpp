// holdfast demo flash-sale: what a lock is for, with figures.
#include "cli/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "support/temporary_folder.hpp"
#include "tools/demo/sale_floor.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr duration patience_to_start = std::chrono::minutes(1);

struct sale_result {
  std::string lock;
  std::int64_t stock = 0;  // at the start
  std::int64_t left = 0;
  std::int64_t orders = 0;
  std::int64_t too_busy = 0;
  std::int64_t sold_out = 0;
  duration p50{};
  duration p99{};
  double per_second = 0;

  [[nodiscard]] std::int64_t sold() const { return stock - left; }
  [[nodiscard]] std::int64_t oversold() const { return orders - sold(); }
  // Every item that left the shelf has one order, and everybody was served or sent away.
  [[nodiscard]] bool exact(const sale_arguments& how) const {
    return oversold() == 0 && left >= 0 && orders + sold_out + too_busy == how.buyers;
  }
};

void count(const shared_array<buyer_score>& scores, time_point opened, sale_result& into) {
  std::vector<duration> waits;
  time_point last = opened;
  for (const buyer_score& score : scores.all()) {
    const buyer_end end = score.end.load(std::memory_order_acquire);
    if (end == buyer_end::sold_out) ++into.sold_out;
    if (end == buyer_end::too_busy) ++into.too_busy;
    last = std::max(last, score.at);
    if (score.granted) waits.push_back(score.waited);
  }
  std::sort(waits.begin(), waits.end());
  if (!waits.empty()) {
    into.p50 = waits[waits.size() / 2];
    into.p99 = waits[waits.size() * 99 / 100];
  }
  const double seconds = std::chrono::duration<double>(last - opened).count();
  into.per_second = seconds > 0 ? static_cast<double>(into.orders) / seconds : 0;
}

std::size_t finished(const shared_array<buyer_score>& scores) {
  const auto all = scores.all();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& one) {
    return one.end.load(std::memory_order_acquire) != buyer_end::none;
  }));
}

std::string fresh_name(const std::string& lock) {
  std::random_device random;
  return "demo/flash-sale/" + lock + "/" + std::to_string(random());
}

complaint why_not(const worker_processes& all, const std::string& lock, const address& to) {
  if (const auto number = all.ended_by()) return ended_by_signal(*number, "the demo was ");
  return {exit_code::engine, "the sale with lock " + lock + " failed (" + to.engine + ", " +
                                 all.trouble()->text + ")"};
}

// `folder`: where the stock lies.
outcome<sale_result> hold_one_sale(const address& to, const credentials& with,
                                   const sale_arguments& how, const std::string& lock,
                                   const std::string& folder, signal_inbox& inbox) {
  const stock_file stock(folder);
  stock.fill(how.stock);
  const shared_array<buyer_score> scores(how.buyers);
  const floor_plan all_of_it{.lock = lock, .name = fresh_name(lock)};
  worker_processes all(inbox, duration{0});
  all.fork_all(how.processes, [&](std::uint32_t number) -> outcome<void> {
    floor_plan plan = all_of_it;
    const std::uint32_t more = how.buyers % how.processes;
    plan.buyers = how.buyers / how.processes + (number < more ? 1 : 0);
    plan.first = number * (how.buyers / how.processes) + std::min(number, more);
    std::optional<client> opened;
    if (lock != "none") {
      auto connected = connect(to, with, hand_over::within_process);
      if (!connected) return tl::unexpected(std::move(connected.error()));
      opened = std::move(*connected);
    }
    hold_sale(plan, opened, stock, scores, all);
    if (opened) opened->close();
    return {};
  });
  if (!all.wait_until_ready(patience_to_start)) {
    return tl::unexpected(why_not(all, lock, to));
  }
  all.start();
  const time_point opened = clock::now();
  {
    status_line line;
    const auto tick = [&] { line.show(bar_text(lock, finished(scores), how.buyers, "buyers")); };
    if (!all.wait_until(time_point::max(), tick)) return tl::unexpected(why_not(all, lock, to));
  }
  sale_result result{
      .lock = lock, .stock = how.stock, .left = stock.left(), .orders = stock.orders()};
  count(scores, opened, result);
  return result;
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

}  // namespace

int flash_sale(const context& context, const sale_arguments& how) {
  namespace fs = std::filesystem;
  const test::temporary_folder folder(fs::temp_directory_path(), "holdfast-sale-");
  const auto to = context.names_engine()
                      ? find_address(context)
                      : address{.url = "sqlite:" + in_url(folder.path().string()) + "/locks.db",
                                .engine = "sqlite"};
  if (!to) return tell(to.error());
  const auto with = credentials_for(context, *to);
  if (!with) return tell(with.error());
  signal_inbox inbox;
  bool exact = true;
  std::vector<std::vector<std::string>> rows{{"lock", "sold", "orders", "stock left", "oversold",
                                              "too busy", "wait p50", "wait p99", "sales/s", ""}};
  for (const std::string& lock : how.locks) {
    const fs::path place = folder.path() / lock;
    fs::create_directory(place);
    const auto result = hold_one_sale(*to, *with, how, lock, place.string(), inbox);
    if (!result) return tell(result.error());
    rows.push_back(row(*result, how));
    exact = exact && (lock == "none" || result->exact(how));
  }
  const int printed = print_all(heading(how, *to) + columns(rows, {1, 2, 3, 4, 5, 6, 7, 8}));
  if (exact) return printed;
  tell("a sale with a lock was not exact (see the table)");
  return exit_code::no;
}

}  // namespace holdfast::cli
