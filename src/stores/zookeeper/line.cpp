#include "stores/zookeeper/line.hpp"

#include <algorithm>

namespace holdfast::zookeeper {

namespace {

bool earlier(const claim_node& left, const claim_node& right) noexcept {
  return left.before(right);
}

}  // namespace

line::line(const std::vector<std::string>& children) {
  nodes_.reserve(children.size());
  for (const std::string& each : children) {
    if (auto node = parse_node(each)) {
      nodes_.push_back(std::move(*node));
    } else if (each == locks_folder || each == leases_folder) {
      semaphore_ = true;
    } else if (each == count_node) {
      latch_ = true;
    }
  }
  std::sort(nodes_.begin(), nodes_.end(), earlier);
  last_excluder_.reserve(nodes_.size() + 1);
  last_excluder_.push_back(none);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    last_excluder_.push_back(nodes_[i].excludes() ? i : last_excluder_.back());
  }
}

std::size_t line::find(const std::string& name) const {
  const auto sought = parse_node(name);
  if (!sought) return none;
  const auto [first, last] = std::equal_range(nodes_.begin(), nodes_.end(), *sought, earlier);
  const auto found = std::find_if(first, last, [&](const auto& each) { return each.name == name; });
  return found == last ? none : static_cast<std::size_t>(found - nodes_.begin());
}

std::size_t line::find(const spi::claim_id& id) const noexcept {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i].id == id) return i;
  }
  return none;
}

std::size_t line::blocker(std::size_t place, bool excludes) const noexcept {
  if (excludes) return place == 0 ? none : place - 1;
  return last_excluder_[place];
}

std::size_t line::blocker_of(std::size_t place) const noexcept {
  return blocker(place, nodes_[place].excludes());
}

std::size_t line::blocker_of_next(bool excludes) const noexcept {
  return blocker(nodes_.size(), excludes);
}

bool line::alone(std::size_t place) const noexcept {
  return place == 0 && (nodes_.size() == 1 || nodes_[1].excludes());
}

bool line::wanted(std::size_t place) const noexcept {
  if (nodes_[place].excludes()) return place + 1 < nodes_.size();
  return last_excluder_.back() != none && last_excluder_.back() > place;
}

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
  // First the next list: it is on its way while these look at theirs. A turn is
  // gone once its flow resumes.
  if (leader != nullptr) leader->then_.resume();
  for (turn* each : served) {
    each->answer_ = what;
    each->then_.resume();
  }
}

}  // namespace holdfast::zookeeper
