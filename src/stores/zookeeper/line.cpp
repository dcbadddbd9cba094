// See the header.
#include "stores/zookeeper/line.hpp"

#include <algorithm>

namespace holdfast::zookeeper {

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
  std::sort(nodes_.begin(), nodes_.end(),
            [](const claim_node& left, const claim_node& right) { return left.before(right); });
}

std::size_t line::find(const std::string& name) const noexcept {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return i;
  }
  return none;
}

std::size_t line::find(const spi::claim_id& id) const noexcept {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i].id == id) return i;
  }
  return none;
}

std::size_t line::blocker(std::size_t place, bool excludes) const noexcept {
  if (excludes) return place == 0 ? none : place - 1;
  while (place-- > 0) {
    if (nodes_[place].excludes()) return place;
  }
  return none;
}

std::size_t line::blocker_of(std::size_t place) const noexcept {
  return blocker(place, nodes_[place].excludes());
}

std::size_t line::blocker_of_next(bool excludes) const noexcept {
  return blocker(nodes_.size(), excludes);
}

bool line::wanted(std::size_t place) const noexcept {
  if (nodes_[place].excludes()) return place + 1 < nodes_.size();
  return std::any_of(nodes_.begin() + static_cast<std::ptrdiff_t>(place), nodes_.end(),
                     [](const claim_node& each) { return each.excludes(); });
}

}  // namespace holdfast::zookeeper
