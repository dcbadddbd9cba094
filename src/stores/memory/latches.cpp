// Count-down latches: the rules of set and down.
#include "stores/memory/latches.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::memory {

result<latches::changed> latches::change(spi::server_time now, const spi::resource_id& resource,
                                         const spi::latch_change& change) {
  if (change.count == 0 || change.count > max_count) {
    return failure(errc::invalid, "a latch counts from 1 to " + std::to_string(max_count));
  }
  latches_.drop_ended(now);
  auto* found = latches_.find(resource);
  latch* known = found == nullptr ? nullptr : &found->value;
  result<changed> answer;
  if (change.what == spi::latch_change::kind::set) {
    answer = set(now, known, resource, change);
  } else if (known != nullptr) {
    answer = down(now, *known, change);
  } else {
    return failure(errc::not_held, "the latch is unset");
  }
  if (answer && answer->counted) {
    const duration life = change.life > duration{0} ? change.life : settings_.life;
    latches_.set_end(resource, after(now, life));
  }
  return answer;
}

result<latches::changed> latches::set(spi::server_time now, latch* found,
                                      const spi::resource_id& resource,
                                      const spi::latch_change& change) {
  if (found == nullptr) found = &latches_.put(resource, now, {});
  found->former.drop_ended(now);
  const bool repeated = found->set_by == change.id || found->former.contains(change.id);
  if (repeated) return changed{{found->count}, false};
  if (found->count > 0) {
    return failure(errc::conflict,
                   "the latch is set, its count is " + std::to_string(found->count));
  }
  const spi::server_time until = after(now, settings_.remember);
  for (const spi::claim_id& id : found->counted) found->former.put(id, until, {});
  if (found->set_by) found->former.put(*found->set_by, until, {});
  found->counted.clear();
  found->set_by = change.id;
  found->count = change.count;
  return changed{{found->count}, true};
}

latches::changed latches::down(spi::server_time now, latch& found,
                               const spi::latch_change& change) {
  found.former.drop_ended(now);
  const bool repeated = found.counted.contains(change.id) || found.former.contains(change.id);
  if (repeated && !core::mutated(core::mutant::latch_counts_repeats)) {
    return {{found.count}, false};
  }
  if (found.count == 0) {
    found.former.put(change.id, after(now, settings_.remember), {});
    return {{0}, false};
  }
  found.counted.insert(change.id);
  found.count -= std::min(found.count, change.count);
  return {{found.count}, true};
}

spi::latch_state latches::read(spi::server_time now, const spi::resource_id& resource) {
  latches_.drop_ended(now);
  const auto* found = latches_.find(resource);
  if (found == nullptr) return {};
  return {found->value.count};
}

bool latches::alive(spi::server_time now, const spi::resource_id& resource) {
  latches_.drop_ended(now);
  return latches_.contains(resource);
}

}  // namespace holdfast::memory
