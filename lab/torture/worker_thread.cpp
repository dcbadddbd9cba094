#include "torture/worker_thread.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace holdfast::torture {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr duration longest_wait = std::chrono::seconds(4);
constexpr duration latch_step = milliseconds(500);
constexpr std::uint32_t latch_count = 2;
constexpr duration glance = milliseconds(2);  // between two looks at a lease

lock_options how(const plan& wanted, bool fair = false) {
  return {.ttl = wanted.ttl, .fair = fair};
}

}  // namespace

worker_thread::worker_thread(worker_context& context, std::uint32_t thread)
    : context_(context),
      thread_(thread),
      random_(sim::random_source(context.sent.wanted.seed)
                  .branch(static_cast<std::uint64_t>(context.sent.process) * 16 + thread + 3)) {}

void worker_thread::work() {
  if (context_.resources.empty()) return;
  while (!context_.stop.stop_requested() && context_.history.room()) {
    std::size_t which = random_.below(context_.resources.size());
    if (context_.resources[which].name == "mutex-cold" && random_.chance(800)) --which;
    if (context_.resources[which].used_by == workload::multi) {
      take_several();
    } else {
      round(which);
    }
    rest(random_.between(duration{}, milliseconds(8)));
  }
}

void worker_thread::rest(duration span) {
  std::unique_lock lock(alone_);
  nobody_.wait_for(lock, context_.stop, span, [] { return false; });
}

sim::record worker_thread::request(std::size_t which) {
  sim::record line;
  line.process = context_.sent.process;
  line.resource = static_cast<std::int32_t>(which);
  line.hold = line.acquisition = context_.next_hold.fetch_add(1);
  return line;
}

acquire_options worker_thread::patience(sim::record& line) {
  const std::uint64_t drawn = random_.below(100);
  line.number = drawn < 10 ? 0 : 1;
  if (drawn < 10) return {.wait = duration{}};
  if (drawn < 30) return {.wait = random_.between(milliseconds(5), milliseconds(300))};
  return {.wait = longest_wait};
}

duration worker_thread::how_long() {
  const duration ttl = context_.sent.wanted.ttl;
  const std::uint64_t drawn = random_.below(100);
  if (drawn < 75) return random_.between(duration{}, milliseconds(2));
  if (drawn < 94) return random_.between(milliseconds(2), milliseconds(25));
  if (drawn < 99) return random_.between(milliseconds(20), ttl / 3);
  return random_.between(ttl / 3, ttl * 3 / 2);  // past the first renewals
}

void worker_thread::failed(sim::record line, const error& why) {
  line.kind = sim::what::acquire_failed;
  line.at = context_.now();
  line.number = static_cast<std::int64_t>(why.code);
  context_.history.add(line);
  if (why != errc::busy && why != errc::timed_out) {
    rest(random_.between(milliseconds(10), milliseconds(80)));
  }
}

void worker_thread::keep(std::vector<holding>& holds, const std::function<void()>& give_back) {
  const auto write = [&] {
    for (holding& each : holds) {
      if (!each.exclusive()) continue;
      const bool before = each.look();
      const bool accepted =
          context_.board.write(static_cast<std::size_t>(each.line().resource), each.line().fence);
      each.wrote(accepted, before && each.look());
    }
  };
  write();
  const time_point end = clock::now() + how_long();
  bool believed = true;
  while (believed && clock::now() < end && !context_.stop.stop_requested()) {
    rest(std::min<duration>(glance, end - clock::now()));
    for (holding& each : holds) believed = each.look() && believed;
  }
  if (random_.chance(500)) write();
  for (holding& each : holds) each.leave();
  give_back();
}

template <class Acquire>
void worker_thread::take(sim::record line, Acquire acquire) {
  const acquire_options options = patience(line);
  line.kind = sim::what::acquire_invoked;
  line.at = context_.now();
  line.until = options.wait;
  context_.history.add(line);
  line.until = {};
  if (line.fair) context_.witness.expect(line);
  result<lease> granted = acquire(options);
  if (!granted) return failed(line, granted.error());
  lease held = std::move(*granted);
  line.number = 0;
  std::vector<holding> holds;
  holds.emplace_back(held, line, context_.sent.start(), context_.history,
                     context_.history.slot(thread_ * 2UL));
  keep(holds, [&] {
    if (random_.chance(100)) return static_cast<void>(lease(std::move(held)));  // dropped
    const auto released = held.release();
    holds.front().left(released ? 0 : static_cast<std::int64_t>(released.error().code));
  });
}

void worker_thread::round(std::size_t which) {
  const resource& wanted = context_.resources[which];
  const plan& terms = context_.sent.wanted;
  const std::string name = context_.sent.prefix + wanted.name;
  sim::record line = request(which);
  switch (wanted.used_by) {
    case workload::mutex:
    case workload::fair: {
      line.fair = wanted.used_by == workload::fair;
      mutex lock(context_.client, name, how(terms, line.fair));
      return take(line, [&](auto options) { return lock.acquire(options, context_.stop); });
    }
    case workload::rw: {
      shared_mutex lock(context_.client, name, how(terms));
      if (random_.chance(300)) {
        return take(line, [&](auto options) { return lock.acquire(options, context_.stop); });
      }
      line.mode = spi::mode::shared;
      return take(line, [&](auto options) { return lock.acquire_shared(options, context_.stop); });
    }
    case workload::semaphore: {
      semaphore lock(context_.client, name, {.max = wanted.rule.max, .lock = how(terms)});
      line.mode = spi::mode::permit;
      line.permits = random_.chance(300) ? 2 : 1;
      return take(line,
                  [&](auto options) { return lock.acquire(options, context_.stop, line.permits); });
    }
    case workload::election: {
      election race(context_.client, name, std::to_string(context_.sent.process), how(terms));
      return take(line, [&](auto options) { return race.campaign(options, context_.stop); });
    }
    case workload::latch:
    case workload::multi:
      return;
  }
}

void worker_thread::take_several() {
  std::vector<std::size_t> group;
  for (std::size_t i = 0; i < context_.resources.size(); ++i) {
    if (context_.resources[i].used_by == workload::multi) group.push_back(i);
  }
  std::swap(group[0], group[random_.below(group.size())]);
  group.resize(2);
  std::vector<lock_part> locks;
  std::vector<sim::record> lines;
  for (const std::size_t which : group) {
    locks.emplace_back(mutex(context_.client, context_.sent.prefix + context_.resources[which].name,
                             how(context_.sent.wanted)));
    // It blocks on one at a time, and chooses which one itself: not counted as waiting.
    sim::record line = request(which);
    line.kind = sim::what::acquire_invoked;
    line.at = context_.now();
    context_.history.add(line);
    lines.push_back(line);
  }
  multi_lock both(std::move(locks));
  auto granted = both.acquire({.wait = longest_wait}, context_.stop);
  if (!granted) {
    for (const sim::record& line : lines) failed(line, granted.error());
    return;
  }
  std::vector<holding> holds;
  holds.reserve(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    holds.emplace_back(granted->leases()[i], lines[i], context_.sent.start(), context_.history,
                       context_.history.slot(thread_ * 2UL + i));
  }
  keep(holds, [&] {
    const auto released = granted->release();
    for (holding& each : holds) {
      each.left(released ? 0 : static_cast<std::int64_t>(released.error().code));
    }
  });
}

void worker_thread::count_latches() {
  // A latch that began before this process did belongs to another one.
  std::int64_t number = context_.now() / latch_step + 1;
  while (!context_.stop.stop_requested() && context_.history.room()) {
    rest(latch_step * number - context_.now());
    if (context_.stop.stop_requested()) return;
    latch_round(number);
    number = std::max(number + 1, context_.now() / latch_step);
  }
}

void worker_thread::latch_round(std::int64_t number) {
  const plan& wanted = context_.sent.wanted;
  holdfast::latch latch(context_.client, context_.sent.prefix + "latch-" + std::to_string(number),
                        {.life = std::chrono::minutes(1)});
  const auto part = [&](std::int64_t offset) {
    return (number + offset) % wanted.clients == context_.sent.client;
  };
  const auto write = [&](sim::what kind, std::int64_t count) {
    sim::record line;
    line.at = context_.now();
    line.kind = kind;
    line.process = context_.sent.process;
    line.resource = first_latch + static_cast<std::int32_t>(number);
    line.number = count;
    context_.history.add(line);
  };
  if (part(0)) {
    write(sim::what::latch_set, latch_count);
    if (!latch.set(latch_count)) return;
  }
  for (const std::int64_t offset : {1, 2}) {
    if (!part(offset)) continue;
    const time_point end = clock::now() + latch_step;
    // Not before it is set: counting down an unset latch is refused.
    for (;;) {
      const auto count = latch.count();
      if (count && *count) break;
      if (clock::now() > end || context_.stop.stop_requested()) return;
      rest(milliseconds(10));
    }
    write(sim::what::latch_down, 0);
    if (!latch.count_down()) return;
  }
  if (latch.wait({.wait = latch_step * 2}, context_.stop)) write(sim::what::latch_told, 0);
}

}  // namespace holdfast::torture
