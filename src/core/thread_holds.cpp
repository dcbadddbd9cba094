#include "core/thread_holds.hpp"

#include "core/mutant.hpp"

namespace holdfast::core {

reentry::entry reentry::enter(std::uint64_t thread) {
  const std::lock_guard lock(mutex_);
  stay* mine = find(thread);
  if (mine == nullptr) return entry::not_inside;
  if (!mine->granted->valid()) return entry::lost;
  if (mine->depth == deepest) return entry::too_deep;
  ++mine->depth;
  if (mutated(mutant::fence_changes_on_reentry)) {
    mine->granted->renumber(fence_token(mine->granted->fence().value() + 1));
  }
  return entry::entered;
}

}  // namespace holdfast::core
