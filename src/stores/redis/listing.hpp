// Lists the resources that have holders or waiters: finds their keys on every node, then asks each
// lane how many.
#pragma once

#include "stores/redis/scripts.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::redis {

// One listing under way; keeps itself until it is answered. Its steps follow each other.
class listing : public std::enable_shared_from_this<listing> {
 public:
  // Names beyond this are not listed, and the answer is overloaded.
  static constexpr std::size_t names_at_most = 100'000;

  using summaries = std::vector<spi::resource_summary>;
  // `what`: namespace, and the beginning of the names.
  static void start(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                    spi::resource_id what, time_point deadline, spi::completion<summaries> done);

 private:
  listing(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
          spi::resource_id what, time_point deadline, spi::completion<summaries> done);

  void scan(const std::string& cursor);
  void scanned(const result<reply>& answer);
  void count();
  void counted(const std::vector<std::string>& keys, const result<reply>& answer);
  void fail(error why);

  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const spi::resource_id what_;
  const std::string pattern_;
  const time_point deadline_;
  spi::completion<summaries> done_;
  std::vector<std::shared_ptr<node>> nodes_;  // still to be scanned
  std::map<lane, std::set<std::string>> keys_;
  std::size_t found_ = 0;
  summaries list_;
};

}  // namespace holdfast::redis
