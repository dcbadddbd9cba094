// Names on a server, each with tables behind it, that tests use one after another: creating the
// tables takes longer than most tests. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

class lent_names {
 public:
  // `fresh` makes a new name. `emptied` is given used names, empties them, and returns those that
  // can be used again.
  template <class Fresh, class Emptied>
  std::string take(const Fresh& fresh, const Emptied& emptied) {
    if (empty_.empty() && used_.size() >= emptied_at_once)
      empty_ = emptied(std::exchange(used_, {}));
    if (empty_.empty()) return fresh();
    std::string name = std::move(empty_.back());
    empty_.pop_back();
    return name;
  }
  void give_back(std::string name) { used_.push_back(std::move(name)); }

 private:
  // Starting a client of the server takes longer than most tests, too.
  static constexpr std::size_t emptied_at_once = 8;

  std::vector<std::string> used_;
  std::vector<std::string> empty_;
};

}  // namespace holdfast::test
