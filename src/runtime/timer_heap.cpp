// The heap; see the header.
#include "runtime/timer_heap.hpp"

#include <utility>

namespace holdfast::runtime {

timer_heap::timer_id timer_heap::add(time_point when, spi::task work) {
  // Whatever can fail comes first and has no visible effect.
  if (free_ == none) {
    slots_.emplace_back().place = none;
    free_ = static_cast<index>(slots_.size() - 1);
  }
  order_.push_back({when, added_++, free_});

  const index at = free_;
  slot& taken = slots_[at];
  free_ = static_cast<index>(taken.place);
  taken.work = std::move(work);
  taken.used = true;
  if (++taken.uses == 0) taken.uses = 1;
  taken.place = order_.size() - 1;
  rise(taken.place);
  return timer_id{taken.uses} << 32 | at;
}

spi::task timer_heap::cancel(timer_id id) noexcept {
  const auto at = static_cast<index>(id);
  if (at >= slots_.size()) return {};
  const slot& found = slots_[at];
  if (!found.used || found.uses != static_cast<std::uint32_t>(id >> 32)) return {};
  return remove(found.place);
}

spi::task timer_heap::pop() noexcept { return remove(0); }

spi::task timer_heap::remove(std::size_t place) noexcept {
  const index at = order_[place].slot;
  slot& freed = slots_[at];
  spi::task work = std::move(freed.work);
  freed.used = false;
  freed.place = free_;
  free_ = at;

  const entry last = order_.back();
  order_.pop_back();
  if (place < order_.size()) {
    put(place, last);
    rise(place);
    sink(slots_[last.slot].place);
  }
  return work;
}

void timer_heap::put(std::size_t place, const entry& item) noexcept {
  order_[place] = item;
  slots_[item.slot].place = place;
}

void timer_heap::rise(std::size_t place) noexcept {
  const entry item = order_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!(item < order_[parent])) break;
    put(place, order_[parent]);
    place = parent;
  }
  put(place, item);
}

void timer_heap::sink(std::size_t place) noexcept {
  const entry item = order_[place];
  for (std::size_t child = 2 * place + 1; child < order_.size(); child = 2 * place + 1) {
    if (child + 1 < order_.size() && order_[child + 1] < order_[child]) ++child;
    if (!(order_[child] < item)) break;
    put(place, order_[child]);
    place = child;
  }
  put(place, item);
}

}  // namespace holdfast::runtime
