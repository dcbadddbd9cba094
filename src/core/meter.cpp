#include "core/meter.hpp"

#include "core/exposition.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>
#include <utility>

namespace holdfast::core {

void histogram::observe(duration took) noexcept {
  std::size_t at = 0;
  while (at < bucket_count && took > bounds_[at]) ++at;
  add(buckets_[at]);
  add(nanoseconds_, static_cast<std::uint64_t>(std::max<duration::rep>(took.count(), 0)));
}

std::array<std::uint64_t, bucket_count + 1> histogram::buckets() const noexcept {
  std::array<std::uint64_t, bucket_count + 1> seen{};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    seen[i] = buckets_[i].load(std::memory_order_acquire);
  }
  return seen;
}

std::uint64_t histogram::count() const noexcept {
  const auto seen = buckets();
  return std::accumulate(seen.begin(), seen.end(), std::uint64_t{0});
}

duration histogram::sum() const noexcept {
  return duration(static_cast<duration::rep>(nanoseconds_.load(std::memory_order_relaxed)));
}

namespace {

// Zero if the end was counted a moment before the beginning.
std::uint64_t more(std::uint64_t begun, std::uint64_t ended) noexcept {
  return begun > ended ? begun - ended : 0;
}

}  // namespace

std::uint64_t series::held() const noexcept {
  const std::uint64_t ended = holds.count();
  return more(waits.count(), ended);
}

std::uint64_t series::waiting() const noexcept {
  std::uint64_t answered = waits.count();
  for (const counter& each : refused) answered += each.load(std::memory_order_acquire);
  return more(asked.load(std::memory_order_acquire), answered);
}

template <class T>
name_table<T>::name_table(std::size_t limit)
    : limit_(limit), slots_(std::bit_ceil(std::max<std::size_t>(limit, 1) * 2)) {}

template <class T>
std::size_t name_table<T>::place(primitive what, std::string_view name) const noexcept {
  return (std::hash<std::string_view>{}(name) + static_cast<std::size_t>(what)) &
         (slots_.size() - 1);
}

template <class T>
T* name_table<T>::find(primitive what, std::string_view name) {
  const std::size_t first = place(what, name);
  for (std::size_t at = first;; at = (at + 1) & (slots_.size() - 1)) {
    entry* seen = slots_[at].load(std::memory_order_acquire);
    if (seen == nullptr) {
      const std::lock_guard lock(mutex_);
      seen = slots_[at].load(std::memory_order_relaxed);
      if (seen == nullptr) {
        if (entries_.size() >= limit_) return nullptr;
        entries_.push_back(std::unique_ptr<entry>(new entry{what, std::string(name), {}}));
        seen = entries_.back().get();
        slots_[at].store(seen, std::memory_order_release);
      }
    }
    if (seen->what == what && seen->name == name) return &seen->value;
  }
}

template <class T>
std::vector<const typename name_table<T>::entry*> name_table<T>::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const entry*> seen;
  for (const auto& each : entries_) seen.push_back(each.get());
  return seen;
}

template class name_table<series>;
template class name_table<std::atomic<std::int64_t>>;

engine_numbers::engine_numbers(std::string which, std::size_t names, std::size_t elections)
    : engine(std::move(which)), by_name(names > 0), named(names), terms(elections) {}

primitive primitive_of(spi::mode mode, spi::role role) noexcept {
  if (mode == spi::mode::shared) return primitive::reader;
  if (mode == spi::mode::permit) return primitive::semaphore;
  if (role == spi::role::writer) return primitive::writer;
  return role == spi::role::leader ? primitive::election : primitive::mutex;
}

// If there is no memory for another name it is counted with the others. So is a lock whose name is
// that label's value, or two series would have the same labels.
series& meter::of(primitive what, std::string_view name) noexcept {
  if (numbers_.by_name && name != other_names) {
    try {
      if (series* own = numbers_.named.find(what, name)) return *own;
    } catch (const std::bad_alloc&) {
    }
  }
  return numbers_.all[static_cast<std::size_t>(what)];
}

void meter::term(primitive what, std::string_view name, int change) noexcept {
  if (what != primitive::election) return;
  try {
    if (auto* held = numbers_.terms.find(what, name)) {
      held->fetch_add(change, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {
  }
}

void meter::asked(primitive what, std::string_view name) noexcept {
  add(of(what, name).asked);
  term(what, name, 0);
}

void meter::granted(primitive what, std::string_view name, duration waited) noexcept {
  of(what, name).waits.observe(waited);
  term(what, name, 1);
}

void meter::refused(primitive what, std::string_view name, errc why) noexcept {
  const auto number = static_cast<std::size_t>(why);
  add(of(what, name).refused[number < refusal_count ? number : 0]);
}

void meter::released(primitive what, std::string_view name, duration held) noexcept {
  of(what, name).holds.observe(held);
  term(what, name, -1);
}

void meter::lost(primitive what, std::string_view name, duration held, loss_cause cause) noexcept {
  add(of(what, name).lost[static_cast<std::size_t>(cause)]);
  released(what, name, held);
}

void meter::reached(bool now) noexcept {
  const reach next = now ? reach::reached : reach::unreached;
  const reach before = reach_.exchange(next, std::memory_order_relaxed);
  if (before == next) return;
  (now ? numbers_.reached : numbers_.unreached).fetch_add(1, std::memory_order_relaxed);
  leave(before);
}

void meter::leave(reach before) noexcept {
  if (before == reach::unknown) return;
  auto& counted = before == reach::reached ? numbers_.reached : numbers_.unreached;
  counted.fetch_sub(1, std::memory_order_relaxed);
}

meter::~meter() { leave(reach_.load(std::memory_order_relaxed)); }

}  // namespace holdfast::core
