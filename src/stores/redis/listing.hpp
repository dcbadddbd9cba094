// Lists the resources that have holders or waiters: finds the keys of all on every node, some at a time since
// most of them may be idle, and asks each partition how many hold and wait.
#pragma once

#include "stores/redis/scripts.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::redis {

// One listing under way; keeps itself until it is answered. It looks for some keys, then asks all partitions about them
// at the same time, then looks for more.
class listing : public std::enable_shared_from_this<listing> {
 public:
  // More names that are held or waited for are not listed: the answer is overloaded.
  static constexpr std::size_t names_at_most = 100'000;
  // For all of it: a server may have millions of keys. Each answer is waited for as long as the caller says.
  static constexpr duration longest = std::chrono::seconds(60);

  using summaries = std::vector<spi::resource_summary>;
  // `what`: namespace, and the beginning of the names.
  static void start(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                    std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
                    const net::patience& until, spi::completion<summaries> done);

 private:
  listing(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
          std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
          const net::patience& until, spi::completion<summaries> done);

  // Keys that are found before their partitions are asked.
  static constexpr std::size_t keys_at_once = 20'000;

  [[nodiscard]] net::patience next_answer() const;
  void scan();
  void scanned(const result<reply>& answer);
  void count();
  void counted(const std::vector<std::string>& keys, const result<reply>& answer);
  result<void> take(const std::vector<std::string>& keys, const result<reply>& answer);
  void finish();
  void fail(error why);

  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const std::shared_ptr<const spi::runtime> clock_;
  const spi::resource_id what_;
  const std::string pattern_;
  const net::patience first_;  // for the first answer
  const duration for_an_answer_;
  const time_point end_;
  spi::completion<summaries> done_;
  std::vector<std::shared_ptr<node>> nodes_;  // still to be scanned
  std::string cursor_ = "0";
  std::map<partition, std::set<std::string>> keys_;
  std::size_t found_ = 0;  // keys_ of all partitions

  std::mutex mutex_;
  std::size_t missing_ = 0;       // answers of partitions; guarded by mutex_
  std::optional<error> failure_;  // guarded by mutex_
  summaries list_;                // guarded by mutex_ while partitions are asked
};

}  // namespace holdfast::redis
