
#include "stores/redis/client/batch.hpp"

#include "stores/redis/client/command.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

// The script that can execute this together with others, or null.
const script* batch_of(const pending& one) noexcept {
  if (one.runs == nullptr || one.asking || one.reloads == 0) return nullptr;
  return one.what.argument_count() == 1 ? one.runs->batched().by.get() : nullptr;
}

}  // namespace

std::size_t batch_size(const pending_queue& from) {
  const script* const by = batch_of(*from.front());
  if (by == nullptr) return 1;
  std::size_t count = 0;
  for (const pending_ptr& one : from) {
    if (count == batch_limit || batch_of(*one) != by) break;
    ++count;
  }
  return count;
}

pending_ptr take_batch(pending_queue& from, std::size_t count) {
  if (count == 1) return take_front(from);
  const script* const by = batch_of(*from.front());
  auto whole = std::make_unique<pending>();
  whole->until = from.front()->until;
  whole->reloads = pending::reload_limit;
  whole->runs = by;
  whole->members.reserve(count);
  command::calls all;
  for (; count > 0; --count) {
    const pending& one = *whole->members.emplace_back(take_front(from));
    all.add(one.what, one.runs->batched().as);
    whole->until.deadline = std::min(whole->until.deadline, one.until.deadline);
  }
  whole->what = by->call(all);
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
