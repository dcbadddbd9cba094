// One batch of renewals at all members: a claim is renewed when a majority of the configured members
// prolonged it, lost when so many say that they do not have it that no majority can.
//
// Thread-safe; lives until the last member has answered.
#pragma once

#include "stores/quorum/quorum_context.hpp"
#include "stores/quorum/round.hpp"

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::quorum {

class renewal_round : public std::enable_shared_from_this<renewal_round> {
 public:
  using answers = std::vector<spi::renewal>;

  // `claims`: null where the quorum does not know the claim, which is then lost.
  renewal_round(std::shared_ptr<quorum_context> quorum_context,
                std::vector<std::shared_ptr<round>> claims, spi::function<void(answers)> done);

  void start(const spi::op_context& context);

 private:
  struct tally {
    std::size_t yes = 0;
    std::size_t no = 0;
    bool prolonged = true;
    duration ttl = forever;
    spi::renewal verdict;
    bool decided = false;
  };

  void ask(std::size_t member, const spi::op_context& context);
  void answered(std::size_t member, const std::vector<std::size_t>& which,
                const result<answers>& answer);
  void raised(std::size_t member, std::size_t which, const result<spi::granted>& answer);
  void count(std::size_t which, const spi::renewal& answer);  // under mutex_
  void one_less();

  const std::shared_ptr<quorum_context> context_;
  const std::vector<std::shared_ptr<round>> claims_;
  time_point sent_at_{};

  std::mutex mutex_;
  std::vector<tally> tallies_;         // guarded by mutex_
  std::size_t undecided_ = 0;          // guarded by mutex_
  std::size_t pending_ = 1;            // guarded by mutex_; one for start()
  spi::function<void(answers)> done_;  // guarded by mutex_
};

}  // namespace holdfast::quorum
