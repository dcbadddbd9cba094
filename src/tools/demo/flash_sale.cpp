// holdfast demo flash-sale: what a lock is for, with figures.
#include "cli/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "core/hex.hpp"
#include "support/temporary_folder.hpp"
#include "tools/worker_processes.hpp"

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

enum class buyer_end : std::uint8_t { none, bought, sold_out, too_busy };

// Shared with the other processes; every buyer writes its own once.
struct buyer_score {
  std::atomic<buyer_end> end{buyer_end::none};
  bool granted = false;  // written before `end`, as are the next two
  duration waited{};
  time_point at{};
};
static_assert(std::atomic<buyer_end>::is_always_lock_free);

// The shop: a stock in a plain file, whose update is read, think, write, with nothing to keep two
// buyers apart; and a file of orders, a line each. Any number of processes may use one folder at a
// time: what happens then is the point. Its calls throw std::system_error.
class stock_file {
 public:
  explicit stock_file(const std::string& folder)
      : stock_(folder + "/stock"), orders_(folder + "/orders") {}

  void fill(std::int64_t items) const {
    std::array<char, 32> text{};
    const int length =
        std::snprintf(text.data(), text.size(), "%*lld\n", width, static_cast<long long>(items));
    const auto file = opened(stock_, O_WRONLY | O_CREAT);
    demand(::pwrite(file.get(), text.data(), static_cast<std::size_t>(length), 0) == length,
           stock_);
  }
  [[nodiscard]] std::int64_t left() const {
    std::array<char, width> text{};
    const auto file = opened(stock_, O_RDONLY);
    demand(::pread(file.get(), text.data(), text.size(), 0) == width, stock_);
    const char* first = std::find_if(text.begin(), text.end(), [](char c) { return c != ' '; });
    std::int64_t items = 0;
    std::from_chars(first, text.end(), items);
    return items;
  }
  [[nodiscard]] std::int64_t orders() const {
    std::ifstream file(orders_);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }

  // Takes one item if there is one: looks, thinks, writes. `still` is asked before it writes.
  [[nodiscard]] buyer_end sell(std::uint32_t buyer, const std::function<bool()>& still) const {
    const std::int64_t items = left();
    if (items <= 0) return buyer_end::sold_out;
    std::this_thread::sleep_for(thinking);
    if (!still()) return buyer_end::too_busy;
    fill(items - 1);
    const std::string line =
        "buyer " + std::to_string(buyer) + " bought item " + std::to_string(items) + "\n";
    const auto file = opened(orders_, O_WRONLY | O_CREAT | O_APPEND);
    demand(::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()),
           orders_);
    return buyer_end::bought;
  }

 private:
  // A card is checked, a price looked up. Long enough for buyers without a lock to collide.
  static constexpr std::chrono::milliseconds thinking{2};
  static constexpr int width = 12;  // of the number in the file

  static runtime::descriptor opened(const std::string& path, int flags) {
    return runtime::checked(::open(path.c_str(), flags | O_CLOEXEC, 0600), path.c_str());
  }
  static void demand(bool fine, const std::string& path) {
    if (!fine) throw std::system_error(errno, std::system_category(), path);
  }

  std::string stock_;
  std::string orders_;
};

struct floor_plan {
  std::string lock;  // none, mutex, fair, rw, semaphore
  std::string name;  // of the resource
  std::uint32_t first = 0;
  std::uint32_t buyers = 0;
};

// Longer than a whole sale on a slow machine: the sale shows locks, not buyers that give up.
constexpr acquire_options patience{.wait = std::chrono::seconds(10)};
constexpr duration sale_lease = std::chrono::seconds(3);

// How one buyer gets the lock.
using way_in = std::function<result<lease>()>;

way_in make_way(const floor_plan& plan, const client& client) {
  lock_options how;
  how.ttl = sale_lease;
  how.fair = plan.lock == "fair";
  if (plan.lock == "semaphore") {
    const auto one =
        std::make_shared<semaphore>(client, plan.name, semaphore_options{.max = 1, .lock = how});
    return [one] { return one->acquire(patience); };
  }
  if (plan.lock == "rw") {
    const auto door = std::make_shared<shared_mutex>(client, plan.name, how);
    // A look at the shelf among other readers, before asking to be alone with it.
    return [door]() -> result<lease> {
      if (auto look = door->acquire_shared(patience); !look) return look;
      return door->acquire(patience);
    };
  }
  const auto door = std::make_shared<mutex>(client, plan.name, how);
  return [door] { return door->acquire(patience); };
}

// Throws where the engine or the shop fails.
buyer_end visit(const stock_file& stock, std::uint32_t buyer, const way_in& way,
                buyer_score& score) {
  if (!way) return stock.sell(buyer, [] { return true; });
  const time_point asked = clock::now();
  auto granted = way();
  score.waited = clock::now() - asked;
  if (granted) {
    score.granted = true;
    const buyer_end end = stock.sell(buyer, [&] { return granted->valid(); });
    static_cast<void>(granted->release());
    return end;
  }
  if (granted.error() != errc::timed_out && granted.error() != errc::busy) {
    throw lock_error(granted.error());
  }
  return buyer_end::too_busy;
}

// One process of a sale: its buyers, each a thread. Returns when the last one has left. `client`: none for the sale
// without a lock.
void hold_sale(const floor_plan& plan, const std::optional<client>& client, const stock_file& stock,
               const shared_array<buyer_score>& scores, worker_processes& all) {
  const way_in way = client ? make_way(plan, *client) : way_in{};
  std::latch open(1);
  std::vector<std::jthread> buyers;
  buyers.reserve(plan.buyers);
  for (std::uint32_t i = 0; i < plan.buyers; ++i) {
    buyers.emplace_back([&, buyer = plan.first + i] {
      open.wait();
      buyer_score& score = scores[buyer];
      try {
        const buyer_end end = visit(stock, buyer, way, score);
        score.at = clock::now();
        score.end.store(end, std::memory_order_release);
      } catch (const std::exception& problem) {
        all.complain({exit_code::engine, problem.what()});
      }
    });
  }
  static_cast<void>(all.wait_for_start());
  open.count_down();
}

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
  // Every item that was sold has one order, and every buyer was served or turned away.
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

// `folder`: where the stock is.
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
  const auto to =
      context.names_engine()
          ? find_address(context)
          : address{.url = "sqlite:" + core::path_in_url(folder.path().string()) + "/locks.db",
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
