// Fair claims are granted in the order in which the server first saw them. A claim may be passed
// over if it cannot be reached, if it was not heard from since an offer that nobody accepted, or if
// its waiter's lease has ended.
#pragma once

#include "sim/checker.hpp"
#include "sim/checkers/lapsed_offers.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class fifo final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "FIFO"; }

  void see(const record& line) override;

 private:
  struct waiter {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    std::uint64_t place = 0;
    bool fair = false;
    bool uncertain = false;  // it is unknown whether this is its place
    moment heard{};
  };
  void judge(const record& line);
  void granted(const record& line);
  [[nodiscard]] bool lapsed(const waiter& each, moment now) const;
  [[nodiscard]] bool excused(std::int32_t claim, const waiter& earlier, moment now) const;

  std::map<std::int32_t, waiter> waiters_;  // by claim
  lapsed_offers offers_;
  std::set<std::int32_t> unreachable_;
  std::uint64_t next_place_ = 1;
  bool void_ = false;  // the server's clock was set: it is unknown which claims are alive
};

}  // namespace holdfast::sim
