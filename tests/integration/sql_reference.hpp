// An SQL store's rules against the reference: the same random verbs at the same times, on the memory
// store's ledger and on a database's rows, must give the same answers and the same pushes.
#pragma once

#include "stores/sql/answers.hpp"

#include <holdfast/spi/store.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

// The verbs as a database answers them, with its clock at `now`. Processes are called "p1" to "p3".
class sql_rules {
 public:
  using time = std::chrono::microseconds;

  virtual ~sql_rules() = default;
  virtual sql::rows attempt(time now, const spi::claim& claim, const std::string& process) = 0;
  // Whether a late attempt could revive it.
  enum class remember : std::uint8_t { no, yes, unless_here };
  virtual sql::rows leave(time now, const spi::claim& claim, remember how) = 0;
  // Where not, nobody leaves like that.
  [[nodiscard]] virtual bool knows_unless_here() const { return false; }
  // An answer for each, in the same order. Claims are sorted by their keys.
  virtual sql::rows renew(time now, const std::vector<spi::claim_ptr>& claims,
                          const std::string& process) = 0;
  virtual sql::rows change(time now, const spi::claim& claim, spi::mode to,
                           const std::string& process) = 0;
  virtual sql::rows transfer(time now, const spi::claim_id& from, const spi::claim& to,
                             const std::string& process, bool remember) = 0;
  virtual sql::rows revoke(time now, const spi::resource_id& resource, bool force) = 0;
  virtual sql::rows change_latch(time now, const spi::resource_id& resource,
                                 const spi::latch_change& change) = 0;
  virtual sql::rows read_latch(time now, const spi::resource_id& resource) = 0;
  virtual sql::rows inspect(time now, const spi::resource_id& resource) = 0;
  // What was pushed since the last call: process and message.
  virtual std::vector<std::pair<std::string, std::string>> heard() = 0;
};

inline std::string sql_process_name(std::uint64_t process) { return "p" + std::to_string(process); }

// Plays 80 random verbs on both for each seed, up to the first difference, which is a failed expectation.
void compare_with_reference(sql_rules& rules, unsigned seeds);

}  // namespace holdfast::test
