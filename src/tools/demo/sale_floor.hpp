// One process of a sale: its buyers, each a thread, the shop that they buy in, and the lock that they buy under.
#pragma once

#include "tools/worker_processes.hpp"

#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace holdfast::cli {

// The shop: a stock in a plain file, whose update is read, think, write, and nothing in it that would keep two buyers
// apart; and a file of orders, a line each. Any number of processes may use one folder at a time: what comes of that is
// the point. Its calls throw std::system_error.
class stock_file {
 public:
  explicit stock_file(const std::string& folder);

  void fill(std::int64_t items) const;
  [[nodiscard]] std::int64_t left() const;
  [[nodiscard]] std::int64_t orders() const;

  // Takes one item if there is one: looks, thinks, writes. `still` is asked before it writes.
  enum class sale : std::uint8_t { done, sold_out, abandoned };
  sale sell(std::uint32_t buyer, const std::function<bool()>& still) const;

 private:
  std::string stock_;
  std::string orders_;
};

enum class buyer_end : std::uint8_t { none, bought, sold_out, too_busy };

// Shared with the other processes; every buyer writes its own once.
struct buyer_score {
  std::atomic<buyer_end> end{buyer_end::none};
  bool granted = false;  // written before `end`, as are the next two
  duration waited{};
  time_point at{};
};
static_assert(std::atomic<buyer_end>::is_always_lock_free);

struct floor_plan {
  std::string lock;  // none, mutex, fair, rw, semaphore
  std::string name;  // of the resource
  std::uint32_t first = 0;
  std::uint32_t buyers = 0;
};

// Returns when the last buyer has left. `client`: none for the sale without a lock.
void hold_sale(const floor_plan& plan, const std::optional<client>& client, const stock_file& stock,
               const shared_array<buyer_score>& scores, worker_processes& all);

}  // namespace holdfast::cli
