#include "stores/zookeeper/listings.hpp"

#include <algorithm>

namespace holdfast::zookeeper {

bool listings::start(const folder& which) {
  const std::lock_guard lock(mutex_);
  return under_way_.try_emplace(which).second;
}

bool listings::turn::await_suspend(std::coroutine_handle<> then) {
  const std::lock_guard lock(all_.mutex_);
  const auto [found, first] = all_.under_way_.try_emplace(which_);
  if (first) return false;
  then_ = then;
  found->second.next.push_back(this);
  return true;
}

void listings::sending(const folder& which) {
  const std::lock_guard lock(mutex_);
  waiting& those = under_way_.at(which);
  those.served = std::exchange(those.next, {});
}

void listings::finished(const folder& which, const answer& what) {
  std::vector<turn*> served;
  turn* leader = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(which);
    served = std::move(found->second.served);
    std::vector<turn*>& next = found->second.next;
    if (next.empty()) {
      under_way_.erase(found);
    } else {
      const auto most_patient = std::max_element(
          next.begin(), next.end(),
          [](const turn* left, const turn* right) { return left->deadline_ < right->deadline_; });
      leader = *most_patient;
      next.erase(most_patient);
      found->second.served.clear();
    }
  }
  // First the next list: it is on its way while these look at theirs. A turn is gone when its flow
  // goes on.
  if (leader != nullptr) leader->then_.resume();
  for (turn* each : served) {
    each->answer_ = what;
    each->then_.resume();
  }
}

}  // namespace holdfast::zookeeper
