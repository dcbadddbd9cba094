// A SQL server and its standby, whichever engine they are: for what happens to locks when one takes
// the other's place.
#pragma once

#include "integration/sql_world.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. Replication is asynchronous.
class sql_pair {
 public:
  sql_pair() = default;
  virtual ~sql_pair() = default;
  sql_pair(const sql_pair&) = delete;
  sql_pair& operator=(const sql_pair&) = delete;

  // Names both servers, the primary first.
  [[nodiscard]] virtual std::string url(const std::string& extra) const = 0;
  // Returns when the standby has all that the primary has committed.
  virtual void catch_up() = 0;
  // Cuts the standby off from the primary.
  virtual void cut() = 0;
  virtual void kill_primary() = 0;
  // The primary continues to run, with its connections, but accepts no more writes.
  virtual void make_primary_read_only() = 0;
  virtual void promote_standby() = 0;
  // How many clients listen to the standby.
  [[nodiscard]] virtual std::size_t listeners() const = 0;
};

struct pair_setup {
  std::string name;
  std::unique_ptr<sql_pair> (*make)();
};

// Of all engines that there are.
std::vector<pair_setup> pair_setups();

}  // namespace holdfast::test
