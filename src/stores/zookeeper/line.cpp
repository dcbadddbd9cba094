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

bool line::wanted(std::size_t place) const noexcept {
  if (nodes_[place].excludes()) return place + 1 < nodes_.size();
  return last_excluder_.back() != none && last_excluder_.back() > place;
}

}  // namespace holdfast::zookeeper
