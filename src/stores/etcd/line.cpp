#include "stores/etcd/line.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace holdfast::etcd {

namespace {

spi::mode mode_of(claim_kind kind) {
  if (kind == claim_kind::permit) return spi::mode::permit;
  return kind == claim_kind::reader ? spi::mode::shared : spi::mode::exclusive;
}

}  // namespace

std::vector<key_range> keys_around(const std::string& prefix, spi::mode mode,
                                   const std::string& own) {
  const key_range all = keys_with(prefix);
  if (mode != spi::mode::shared) return {all};
  const key_range readers = keys_with(prefix + std::string(folder_of(claim_kind::reader)));
  return {keys_with(own), {all.key, readers.key}, {readers.end, all.end}};
}

line::line(const std::string& prefix, const std::vector<key_value>& kvs, std::int64_t revision)
    : revision_(revision) {
  std::map<std::string, std::pair<spi::mode, std::int64_t>> changed;
  std::set<std::string> revoked;
  std::map<std::string, std::pair<std::string, std::int64_t>> owners;
  for (const key_value& each : kvs) {
    if (!each.key.starts_with(prefix)) continue;
    const auto key = parse_key(std::string_view(each.key).substr(prefix.size()));
    if (!key) continue;
    if (key->part == key_part::latch) {
      has_latch_ = true;
    } else if (key->part == key_part::mode) {
      const auto mode = each.value == "shared" ? spi::mode::shared : spi::mode::exclusive;
      changed[key->id] = {mode, each.modified};
    } else if (key->part == key_part::revoked) {
      revoked.insert(key->id);
    } else if (key->part == key_part::owner) {
      owners[key->id] = {each.value, each.modified};
    } else {
      standing one;
      one.kind = key->kind;
      one.id = key->id;
      one.claim = owner_in(each.value).value_or(id_text(key->id));
      one.key = each.key;
      one.value = each.value;
      one.created = one.fenced = each.created;
      one.lease = each.lease;
      one.mode = mode_of(key->kind);
      if (one.mode == spi::mode::permit) {
        one.permits = stores::permits_in(each.value).value_or(stores::permits_data{});
      }
      claims_.push_back(std::move(one));
    }
  }
  std::sort(claims_.begin(), claims_.end(), [](const standing& left, const standing& right) {
    return left.created < right.created;
  });
  for (standing& each : claims_) {
    each.revoked = revoked.contains(each.id);
    if (const auto owner = owners.find(each.id); owner != owners.end()) {
      std::tie(each.owner, each.handed_on) = owner->second;
    }
    const auto found = changed.find(each.id);
    if (found == changed.end() || each.mode == spi::mode::permit) continue;
    each.changed = true;
    each.mode = found->second.first;
    each.fenced = found->second.second;
    changed.erase(found);
  }
  lacks_claims_ = !changed.empty();
}

std::size_t line::find(const std::string& id, std::int64_t created) const noexcept {
  for (std::size_t i = claims_.size(); i-- > 0;) {
    if (claims_[i].created == created && claims_[i].id == id) return i;
  }
  return none;
}

std::size_t line::find_owned(std::string_view owner) const noexcept {
  const auto found = std::ranges::find(claims_, owner, &standing::owner);
  return found == claims_.end() ? none : static_cast<std::size_t>(found - claims_.begin());
}

std::size_t line::blocker(std::size_t place, spi::mode mode, std::uint32_t permits,
                          std::uint32_t max) const noexcept {
  if (mode == spi::mode::exclusive) return place == 0 ? none : place - 1;
  if (mode == spi::mode::shared) {
    while (place-- > 0) {
      if (claims_[place].excludes()) return place;
    }
    return none;
  }
  std::uint64_t used = permits;
  for (std::size_t i = 0; i < place; ++i) used += claims_[i].permits.permits;
  return used <= max ? none : 0;
}

std::size_t line::blocker_of(std::size_t place) const noexcept {
  const standing& one = claims_[place];
  return blocker(place, one.mode, one.permits.permits, one.permits.max);
}

std::size_t line::blocker_of_next(spi::mode mode, std::uint32_t permits,
                                  std::uint32_t max) const noexcept {
  return blocker(claims_.size(), mode, permits, max);
}

bool line::wanted(std::size_t place) const noexcept {
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    if (i != place && claims_[i].created > claims_[place].created && !holds(i)) return true;
  }
  return false;
}

std::optional<error> line::conflict(spi::mode mode, std::uint32_t max, std::size_t place) const {
  if (has_latch_) return error{errc::name_conflict, "the name is in use as a latch"};
  if (place == 0 || claims_.empty()) return std::nullopt;
  const standing& first = claims_.front();
  const bool is_semaphore = first.mode == spi::mode::permit;
  if (is_semaphore != (mode == spi::mode::permit)) {
    return error{errc::name_conflict, is_semaphore ? "the name is in use as a semaphore"
                                                   : "the name is in use as a lock"};
  }
  if (!is_semaphore || first.permits.max == max) return std::nullopt;
  return error{errc::conflict, "max is " + std::to_string(first.permits.max) + " there and " +
                                   std::to_string(max) + " here"};
}

}  // namespace holdfast::etcd
