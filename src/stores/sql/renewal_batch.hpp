// A renewal of many claims that takes several calls, and has one answer.
#pragma once

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <mutex>
#include <vector>

namespace holdfast::sql {

// Thread-safe. Of claims whose call failed nothing is known; if all failed, that is the answer.
class renewal_batch {
 public:
  using answer = spi::completion<std::vector<spi::renewal>>;

  renewal_batch(std::size_t claims, std::size_t parts, answer done);

  // Once for each part. `part`: which claims they are.
  void take(const std::vector<std::size_t>& part, result<std::vector<spi::renewal>> given);

 private:
  const std::size_t parts_;
  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::vector<spi::renewal> answers_;
  std::size_t open_;
  std::size_t failed_ = 0;
  error why_;
  answer done_;
};

}  // namespace holdfast::sql
