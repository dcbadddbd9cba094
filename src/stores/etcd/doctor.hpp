// What the members in the URL report about themselves, and how `doctor` judges it.
#pragma once

#include "stores/etcd/messages.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace holdfast::etcd {

// Filled member by member, then judged. Not thread-safe.
class cluster_health {
 public:
  void add(const std::string& server, const result<status_answer>& answer);
  void members(std::size_t count) { members_ = count; }

  // members, version, leader, alarms: always all four.
  [[nodiscard]] std::vector<spi::check> checks() const;

 private:
  [[nodiscard]] spi::check servers() const;
  [[nodiscard]] spi::check version() const;
  [[nodiscard]] spi::check leader() const;
  [[nodiscard]] spi::check alarms() const;

  std::size_t configured_ = 0;
  std::size_t answering_ = 0;
  std::size_t leaderless_ = 0;
  std::size_t members_ = 0;  // of the cluster; 0: not known
  std::set<std::uint64_t> leaders_;
  std::set<std::string> versions_;
  std::set<std::string> errors_;
  std::string problems_;
};

}  // namespace holdfast::etcd
