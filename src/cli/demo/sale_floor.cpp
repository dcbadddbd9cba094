#include "cli/demo/sale_floor.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <exception>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

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

buyer_end buy(const stock_file& stock, std::uint32_t buyer, const std::optional<lease>& held) {
  switch (stock.sell(buyer, [&] { return !held || held->valid(); })) {
    case stock_file::sale::done:
      return buyer_end::bought;
    case stock_file::sale::sold_out:
      return buyer_end::sold_out;
    case stock_file::sale::abandoned:
      break;
  }
  return buyer_end::too_busy;
}

buyer_end visit(const stock_file& stock, std::uint32_t buyer, const way_in& way, buyer_score& score,
                const sale_board& board) {
  if (!way) return buy(stock, buyer, std::nullopt);
  const time_point asked = clock::now();
  auto granted = way();
  score.waited = clock::now() - asked;
  if (granted) {
    score.granted = true;
    std::optional<lease> held(std::move(*granted));
    const buyer_end end = buy(stock, buyer, held);
    if (auto released = held->release(); !released) board.complain(released.error().message());
    return end;
  }
  if (granted.error() == errc::timed_out || granted.error() == errc::busy) {
    return buyer_end::too_busy;
  }
  board.complain(granted.error().message());
  return buyer_end::failed;
}

}  // namespace

void hold_sale(const floor_plan& plan, const std::optional<client>& client, const stock_file& stock,
               const sale_board& board, const std::function<void()>& start) {
  const way_in way = client ? make_way(plan, *client) : way_in{};
  std::latch open(1);
  std::vector<std::jthread> buyers;
  buyers.reserve(plan.buyers);
  for (std::uint32_t i = 0; i < plan.buyers; ++i) {
    buyers.emplace_back([&, buyer = plan.first + i] {
      open.wait();
      buyer_score& score = board.scores()[buyer];
      buyer_end end = buyer_end::failed;
      try {
        end = visit(stock, buyer, way, score, board);
      } catch (const std::exception& problem) {
        board.complain(problem.what());
      }
      score.at = clock::now();
      score.end.store(end, std::memory_order_release);
    });
  }
  start();
  open.count_down();
}

}  // namespace holdfast::cli
