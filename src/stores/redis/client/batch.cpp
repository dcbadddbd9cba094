
#include "stores/redis/client/batch.hpp"

#include "stores/redis/client/command.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

// The script that would do this together with others, or null.
const script* batch_of(const pending& one) noexcept {
  if (one.runs == nullptr || one.asking || one.reloads == 0) return nullptr;
  return one.kept->argument_count() == 1 ? one.runs->batched().by.get() : nullptr;
}

}  // namespace

std::size_t batch_size(const pending_queue& from) {
  const script* const by = batch_of(*from.begin());
  if (by == nullptr) return 1;
  std::size_t count = 0;
  for (const pending& one : from) {
    if (count == batch_limit || batch_of(one) != by) break;
    ++count;
  }
  return count;
}

pending take_batch(pending_queue& from, std::size_t count) {
  if (count == 1) return from.take_front();
  const script* const by = batch_of(from.front());
  pending whole{.until = from.front().until, .reloads = pending::reload_limit, .runs = by};
  whole.members.reserve(count);
  command::calls all;
  for (; count > 0; --count) {
    const pending& one = whole.members.emplace_back(from.take_front());
    all.add(*one.kept, one.runs->batched().as);
    whole.until.deadline = std::min(whole.until.deadline, one.until.deadline);
  }
  whole.kept = by->call(all);
  return whole;
}

std::vector<reply> batch_answers(const pending& whole, reply answer) {
  const std::size_t count = whole.members.size();
  if (answer.is(reply::type::array) && answer.elements.size() == count) {
    return std::move(answer.elements);
  }
  if (answer.is_error("OOM")) return std::vector<reply>(count, reply{});
  if (!answer.is_error()) {
    answer = reply{};
    answer.kind = reply::type::error;
    answer.text = "ERR unexpected reply";
  }
  return std::vector<reply>(count, answer);
}

}  // namespace holdfast::redis
