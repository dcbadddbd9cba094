#include "tools/demo/sale_floor.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

// A card is checked, a price looked up. Long enough that buyers without a lock meet.
constexpr std::chrono::milliseconds thinking{2};
constexpr int width = 12;  // of the number in the file

runtime::descriptor opened(const std::string& path, int flags) {
  return runtime::checked(::open(path.c_str(), flags | O_CLOEXEC, 0600), path.c_str());
}

void demand(bool fine, const std::string& path) {
  if (!fine) throw std::system_error(errno, std::system_category(), path);
}

}  // namespace

stock_file::stock_file(const std::string& folder)
    : stock_(folder + "/stock"), orders_(folder + "/orders") {}

void stock_file::fill(std::int64_t items) const {
  std::array<char, 32> text{};
  const int length =
      std::snprintf(text.data(), text.size(), "%*lld\n", width, static_cast<long long>(items));
  const auto file = opened(stock_, O_WRONLY | O_CREAT);
  demand(::pwrite(file.get(), text.data(), static_cast<std::size_t>(length), 0) == length, stock_);
}

std::int64_t stock_file::left() const {
  std::array<char, width> text{};
  const auto file = opened(stock_, O_RDONLY);
  demand(::pread(file.get(), text.data(), text.size(), 0) == width, stock_);
  const char* first = std::find_if(text.begin(), text.end(), [](char c) { return c != ' '; });
  std::int64_t items = 0;
  std::from_chars(first, text.end(), items);
  return items;
}

std::int64_t stock_file::orders() const {
  std::ifstream file(orders_);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

stock_file::sale stock_file::sell(std::uint32_t buyer, const std::function<bool()>& still) const {
  const std::int64_t items = left();
  if (items <= 0) return sale::sold_out;
  std::this_thread::sleep_for(thinking);
  if (!still()) return sale::abandoned;
  fill(items - 1);
  const std::string line =
      "buyer " + std::to_string(buyer) + " bought item " + std::to_string(items) + "\n";
  const auto file = opened(orders_, O_WRONLY | O_CREAT | O_APPEND);
  demand(::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()),
         orders_);
  return sale::done;
}

namespace {

// Longer than a whole sale on a slow machine: it shows locks, not buyers that give up.
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

buyer_end buy(const stock_file& stock, std::uint32_t buyer, const std::function<bool()>& still) {
  switch (stock.sell(buyer, still)) {
    case stock_file::sale::done:
      return buyer_end::bought;
    case stock_file::sale::sold_out:
      return buyer_end::sold_out;
    case stock_file::sale::abandoned:
      break;
  }
  return buyer_end::too_busy;
}

// Throws where the engine or the shop fails.
buyer_end visit(const stock_file& stock, std::uint32_t buyer, const way_in& way,
                buyer_score& score) {
  if (!way) return buy(stock, buyer, [] { return true; });
  const time_point asked = clock::now();
  auto granted = way();
  score.waited = clock::now() - asked;
  if (granted) {
    score.granted = true;
    const buyer_end end = buy(stock, buyer, [&] { return granted->valid(); });
    static_cast<void>(granted->release());
    return end;
  }
  if (granted.error() != errc::timed_out && granted.error() != errc::busy) {
    throw lock_error(granted.error());
  }
  return buyer_end::too_busy;
}

}  // namespace

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

}  // namespace holdfast::cli
