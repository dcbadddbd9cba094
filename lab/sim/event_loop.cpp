#include "sim/event_loop.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

constexpr std::uint32_t index_of(event_loop::event_id id) noexcept {
  return static_cast<std::uint32_t>(id);
}
constexpr std::uint32_t generation_of(event_loop::event_id id) noexcept {
  return static_cast<std::uint32_t>(id >> 32U);
}

}  // namespace

event_loop::slot* event_loop::find(event_id id) noexcept {
  const std::uint32_t index = index_of(id);
  if (index >= slots_.size()) return nullptr;
  slot& found = slots_[index];
  return found.used && found.generation == generation_of(id) ? &found : nullptr;
}

spi::task event_loop::take(event_id id) noexcept {
  slot& taken = slots_[index_of(id)];
  spi::task work = std::move(taken.work);
  taken.used = false;
  ++taken.generation;
  free_.push_back(index_of(id));
  --live_;
  return work;
}

void event_loop::push(moment when, event_id id) {
  slot& pushed = slots_[index_of(id)];
  pushed.when = std::max(when, now_);
  pushed.sequence = next_sequence_++;
  heap_.push_back({pushed.when, pushed.sequence, id});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

event_loop::event_id event_loop::at(moment when, node& owner, event_class kind, spi::task work,
                                    std::uint32_t channel) {
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
    free_.reserve(slots_.size());
  } else {
    index = free_.back();
    free_.pop_back();
  }
  slot& made = slots_[index];
  made.work = std::move(work);
  made.owner = &owner;
  made.kind = kind;
  made.channel = channel;
  made.label = node::mixed((running_ == nullptr ? owner : *running_).past(), ++made_);
  made.used = true;
  ++live_;
  const event_id id = (static_cast<event_id>(made.generation) << 32U) | index;
  push(when, id);
  return id;
}

void event_loop::cancel(event_id id) noexcept {
  if (find(id) != nullptr) take(id);
}

bool event_loop::step(moment limit) {
  while (!heap_.empty()) {
    const entry next = heap_.front();
    slot* const due = find(next.id);
    if (due != nullptr && next.when > limit) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    if (due == nullptr) continue;
    now_ = std::max(now_, next.when);
    node& owner = *due->owner;
    if (owner.paused()) {
      owner.deferred_.push_back(next.id);
      continue;
    }
    mix(static_cast<std::uint64_t>(now_.count()) + next.sequence);
    perform(next.id);
    return true;
  }
  return false;
}

void event_loop::perform(event_id id) {
  slot& due = slots_[index_of(id)];
  node& owner = *due.owner;
  owner.mark(due.label);
  owner.mark(static_cast<std::uint64_t>(now_.count()));
  spi::task work = take(id);
  ++steps_;
  running_ = &owner;
  made_ = 0;
  work();
  running_ = nullptr;
  made_ = 0;
}

void event_loop::run(event_id id) {
  const slot* const due = find(id);
  if (due == nullptr) return;
  advance(due->when);
  perform(id);
}

void event_loop::list(std::vector<scheduled>& into) const {
  into.clear();
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    const slot& each = slots_[index];
    if (!each.used) continue;
    into.push_back({(static_cast<event_id>(each.generation) << 32U) | index, each.when,
                    each.sequence, each.owner, each.kind, each.channel, each.label});
  }
}

void event_loop::pause(node& target) noexcept { target.paused_ = true; }

void event_loop::resume(node& target, resume_order order) {
  if (!target.paused_) return;
  target.paused_ = false;
  std::vector<event_id> waiting = std::exchange(target.deferred_, {});
  std::erase_if(waiting, [this](event_id id) { return find(id) == nullptr; });
  if (order != resume_order::as_it_came) {
    const event_class first =
        order == resume_order::timers_first ? event_class::timer : event_class::receipt;
    std::stable_partition(waiting.begin(), waiting.end(),
                          [&](event_id id) { return find(id)->kind == first; });
  }
  for (const event_id id : waiting) push(now_, id);
}

std::size_t event_loop::pending(const node& owner) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(),
                    [&](const slot& each) { return each.used && each.owner == &owner; }));
}

void event_loop::clear() {
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    if (!slots_[index].used) continue;
    cancel((static_cast<event_id>(slots_[index].generation) << 32U) | index);
  }
  heap_.clear();
}

}  // namespace holdfast::sim
