#include "cli/demo/sale_floor.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <latch>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

static_assert(std::atomic<buyer_end>::is_always_lock_free);

struct sale_board::shared {
  std::atomic<bool> taken{false};
  std::atomic<bool> written{false};
  std::array<char, 512> trouble{};
};

namespace {

constexpr std::size_t header = 1024;

}  // namespace

sale_board::sale_board(std::size_t buyers)
    : buyers_(buyers), bytes_(header + buyers * sizeof(buyer_score)) {
  static_assert(sizeof(shared) <= header);
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  shared_ = ::new (memory) shared;
  for (std::size_t i = 0; i < buyers_; ++i) ::new (&scores()[i]) buyer_score;
}

sale_board::~sale_board() { ::munmap(shared_, bytes_); }

std::span<buyer_score> sale_board::scores() const noexcept {
  auto* first = reinterpret_cast<std::byte*>(shared_) + header;
  return {reinterpret_cast<buyer_score*>(first), buyers_};
}

std::size_t sale_board::finished() const noexcept {
  const auto all = scores();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& one) {
    return one.end.load(std::memory_order_acquire) != buyer_end::none;
  }));
}

void sale_board::complain(std::string_view text) const noexcept {
  if (shared_->taken.exchange(true)) return;
  const std::size_t length = std::min(text.size(), shared_->trouble.size() - 1);
  std::memcpy(shared_->trouble.data(), text.data(), length);
  shared_->written.store(true, std::memory_order_release);
}

std::string sale_board::trouble() const {
  if (!shared_->written.load(std::memory_order_acquire)) return {};
  return shared_->trouble.data();
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
