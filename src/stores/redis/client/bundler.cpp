// See the header.
#include "stores/redis/client/bundler.hpp"

#include "stores/redis/client/script.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

// The script that would do this together with others, or null.
const script* bundle_of(const pending& one) noexcept {
  if (one.runs == nullptr || !one.kept || one.kept->argument_count() != 1) return nullptr;
  return one.runs->bundled().by.get();
}

}  // namespace

bool bundler::may_join(const pending& one) noexcept { return bundle_of(one) != nullptr; }

std::size_t bundler::together(const pending_queue& from) const {
  const script* const by = alone_ > 0 ? nullptr : bundle_of(*from.begin());
  if (by == nullptr) return 1;
  std::size_t count = 0;
  for (const pending& one : from) {
    if (count == at_most || bundle_of(one) != by) break;
    ++count;
  }
  return count;
}

pending bundler::take(pending_queue& from, std::size_t count) {
  if (count == 1) {
    if (alone_ > 0) --alone_;
    return from.take_front();
  }
  const script* const by = bundle_of(from.front());
  pending whole{.until = from.front().until, .in_full = true, .runs = by};
  whole.members.reserve(count);
  command::calls all;
  for (; count > 0; --count) {
    const pending& one = whole.members.emplace_back(from.take_front());
    all.add(*one.kept, one.runs->bundled().as);
    whole.until.deadline = std::min(whole.until.deadline, one.until.deadline);
  }
  whole.kept = by->by_hash(all);
  return whole;
}

std::vector<reply> bundler::open(const pending& whole, reply answer) {
  const std::size_t count = whole.members.size();
  if (answer.is(reply::type::array) && answer.elements.size() == count) {
    const auto in_vain = std::ranges::count(answer.elements, reply::type::nil, &reply::kind);
    alone_ += wary * static_cast<std::size_t>(in_vain);
    return std::move(answer.elements);
  }
  if (!answer.is_error()) {
    answer = reply{};
    answer.kind = reply::type::error;
    answer.text = "ERR unexpected reply";
  }
  return std::vector<reply>(count, answer);
}

}  // namespace holdfast::redis
