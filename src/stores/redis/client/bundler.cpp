// See the header.
#include "stores/redis/client/bundler.hpp"

#include "stores/redis/client/script.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

// The script that would do this together with others, or null.
const script* bundle_of(const pending& one) {
  if (one.runs == nullptr || !one.kept || one.kept->argument_count() != 1) return nullptr;
  return one.runs->bundled().by.get();
}

}  // namespace

pending bundler::take(std::deque<pending>& from) {
  const script* const by = alone_ > 0 ? nullptr : bundle_of(from.front());
  std::size_t count = 0;
  if (by != nullptr) {
    const std::size_t limit = std::min(from.size(), at_most);
    while (count < limit && bundle_of(from[count]) == by) ++count;
  }
  if (count < 2) {
    pending one = std::move(from.front());
    from.pop_front();
    if (alone_ > 0) --alone_;
    return one;
  }
  pending whole{.deadline = from.front().deadline, .in_full = true, .runs = by};
  whole.members.reserve(count);
  command::calls all;
  for (; count > 0; --count) {
    pending& one = from.front();
    all.add(*one.kept, one.runs->bundled().as);
    whole.deadline = std::min(whole.deadline, one.deadline);
    whole.members.push_back(std::move(one));
    from.pop_front();
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
    answer.text = "ERR an answer that is none of ours";
  }
  return std::vector<reply>(count, answer);
}

}  // namespace holdfast::redis
