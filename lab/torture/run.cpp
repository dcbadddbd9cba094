#include "torture/run.hpp"

#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "torture/client_processes.hpp"
#include "torture/nemesis.hpp"

#include <holdfast/client.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

namespace holdfast::torture {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr duration to_end = seconds(30);         // for a client, once told
constexpr duration waiters_lease = seconds(35);  // a killed client's queue entry ends by itself
constexpr duration long_run = seconds(60);
constexpr duration show_every = milliseconds(200);
constexpr duration to_answer = seconds(30);  // for an engine that was just started
// A client that wants to ask may be kept from it by a busy machine.
constexpr duration order_margin = seconds(1);

client connect(const std::string& url, const std::string& password, const std::string& space) {
  std::optional<result<client>> opened;
  const auto answers = [&] {
    client_options options;
    options.password = password;
    options.name_space = space;
    opened = client::open(url, std::move(options));
    return *opened || opened->error() != errc::unavailable;
  };
  if (test::eventually(answers, to_answer) && *opened) return **opened;
  throw trouble("cannot open the engine (" + opened->error().message() + ")");
}

std::string fresh_prefix() {
  std::random_device random;
  return "torture/" + std::to_string(random()) + "/";
}

// Allows for everything that may go wrong at the engine in this many steps: its faults, its ttl,
// an offer that nobody accepts, a re-check.
duration wake_bound(const plan& wanted) { return wanted.ttl * 2 + seconds(6); }

class leak_search {
 public:
  leak_search(const client& looking, std::string prefix, const std::vector<resource>& resources)
      : client_(looking), prefix_(std::move(prefix)), resources_(resources) {}

  // What is left of the run's names when the limit ends, or sooner if nothing is.
  std::vector<sim::record> look(duration limit, bool waiters_too, time_point start) {
    std::vector<sim::record> left;
    const auto nothing = [&] { return (left = look_once(waiters_too, start)).empty(); };
    static_cast<void>(test::eventually(nothing, limit));
    return left;
  }

 private:
  std::vector<sim::record> look_once(bool waiters_too, time_point start) {
    const auto all = client_.list(prefix_);
    if (!all) {
      if (all.error() == errc::unavailable) return {whole(start)};
      throw trouble("cannot list what is left (" + all.error().message() + ")");
    }
    std::vector<sim::record> left;
    for (const auto& each : *all) {
      const std::size_t claims = each.holders + (waiters_too ? each.waiters : 0);
      if (claims == 0) continue;
      sim::record line = whole(start);
      line.number = static_cast<std::int64_t>(claims);
      for (std::size_t i = 0; i < resources_.size(); ++i) {
        if (prefix_ + resources_[i].name == each.name) line.resource = static_cast<std::int32_t>(i);
      }
      left.push_back(line);
    }
    return left;
  }
  static sim::record whole(time_point start) {
    sim::record line;
    line.at = clock::now() - start;
    line.kind = sim::what::left_behind;
    line.number = 1;
    return line;
  }

  const client& client_;
  std::string prefix_;
  const std::vector<resource>& resources_;
};

// The longest time that this host was paused: none of its processes ran, and a client that had
// begun to ask, or was about to release, was later than it thought. That is not held against the
// engine.
//
// Thread-safe. Measures while it lives.
class standstill {
 public:
  [[nodiscard]] duration longest() const noexcept { return duration(longest_.load()); }

 private:
  static constexpr std::chrono::milliseconds step{20};

  void measure(const std::stop_token& stop) {
    time_point before = clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(step);
      const time_point now = clock::now();
      longest_ = std::max(longest_.load(), (now - before - step).count());
      before = now;
    }
  }

  std::atomic<duration::rep> longest_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { measure(stop); }};
};

void merge(std::vector<sim::record>& into, const std::vector<sim::record>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::stable_sort(into.begin(), into.end(), [](const sim::record& left, const sim::record& right) {
    return left.at < right.at;
  });
}

// The part of a run during which faults happen, and a quiet time after it.
void run_with_faults(const plan& wanted, client_processes& clients, nemesis& faults,
                     time_point start, const onlooker& seen) {
  time_point next_show = start;
  bool healed = false;
  for (;;) {
    const duration passed = clock::now() - start;
    const duration end = wanted.length + faults.late();
    const duration quiet = wanted.ttl + milliseconds(500);
    if (passed >= end + quiet) return;
    if (passed < end) {
      faults.act();
    } else if (!std::exchange(healed, true)) {
      faults.heal();
    }
    clients.look_after();
    if (clock::now() >= next_show) {
      next_show = clock::now() + show_every;
      if (!seen({passed, clients.grants(), faults.begun(), healed ? "quiet" : "torture"})) break;
    }
    const time_point due =
        start + (passed < end ? std::min<duration>(faults.next(), end) : end + quiet);
    clients.watch(std::min(due, next_show) - clock::now());
  }
  faults.heal();
}

}  // namespace

abilities ask(const std::string& url, const std::string& password, const std::string& space) {
  const client opened = connect(url, password, space);
  const spi::caps& caps = opened.caps();
  abilities found;
  found.engine = caps.engine;
  for (const workload each : all_workloads) {
    if (each == workload::fair && !caps.fair && !caps.always_fair) continue;
    if (each == workload::rw && !caps.shared) continue;
    if (each == workload::semaphore && !caps.permits) continue;
    if (each == workload::latch && !caps.latches) continue;
    found.workloads.push_back(each);
  }
  return found;
}

run_record hold(const setup& how, testbed& engine, const onlooker& seen) {
  const test::temporary_folder folder;
  const client looking = connect(engine.quiet_url(), how.password, how.space);
  run_record told;
  told.wanted = how.wanted;
  told.engine = looking.caps().engine;
  told.resources = resources_of(how.wanted);
  told.wake_bound = wake_bound(how.wanted);
  told.order_margin = order_margin;
  for (const fault each : how.wanted.faults) {
    if (engine.forgets(each)) told.forgets.push_back(each);
  }
  assignment first;
  first.wanted = how.wanted;
  first.wanted.schedule.clear();
  first.password = how.password;
  first.space = how.space;
  first.prefix = fresh_prefix();
  const time_point start = clock::now();
  first.started = start.time_since_epoch().count();

  client_processes clients(folder.path(), how.program, first,
                           [&engine](std::uint32_t client) { return engine.url(client); });
  nemesis faults(how.wanted, engine, clients, start);
  const standstill machine;
  try {
    run_with_faults(how.wanted, clients, faults, start, seen);
  } catch (const std::runtime_error& problem) {
    throw trouble(problem.what());
  }
  seen({clock::now() - start, clients.grants(), faults.begun(), "ending"});
  clients.finish(to_end);
  told.wake_bound += 2 * machine.longest();
  told.order_margin += machine.longest();
  told.records = clients.gather();
  if (told.records.empty() || clients.grants() == 0) {
    const std::string said = clients.complaints();
    if (!said.empty()) throw trouble("no client was ever granted anything: " + said);
  }
  merge(told.records, faults.records());

  told.looked_for_leaks = looking.caps().supports_listing;
  if (told.looked_for_leaks) {
    const bool lines_too = !clients.killed_any() || how.wanted.length >= long_run;
    const duration limit = clients.killed_any() && lines_too ? waiters_lease : duration{};
    leak_search search(looking, first.prefix, told.resources);
    merge(told.records, search.look(std::max<duration>(limit, how.wanted.ttl * 2 + seconds(6)),
                                    lines_too, start));
  }
  return told;
}

}  // namespace holdfast::torture
