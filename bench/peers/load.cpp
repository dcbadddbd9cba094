// What many claims cost, for bench/scaling: grants from a queue of this length, and a lock beside
// this many held ones.
//
//   peer_load waiters URL N     fair claims of one client in line for one lock, each of which queues
//                                again when it was granted
//   peer_load held URL N        N locks are held: what a pair on another costs, and a renewal
//   peer_load names URL N       N names were used: what a pair on one of them costs
//
// Prints "ready" when all are there, waits for a line, measures, prints one line of JSON; with
// "held" twice, first for pairs, then for renewals. "client_bytes": what they have added to the
// resident memory of this process, per claim.
#include <holdfast/holdfast.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using holdfast::clock;
using holdfast::duration;
using holdfast::lease;
using holdfast::result;
using holdfast::time_point;
using namespace std::chrono_literals;

double microseconds(duration span) { return static_cast<double>(span.count()) / 1e3; }

duration processor_time() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto span = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return span(use.ru_utime) + span(use.ru_stime);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::getpagesize());
}

void wait_for_order() {
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
}

// `bytes`: per claim; 0 if there are no claims.
void print(const char* what, long count, duration processor, duration wall, double bytes = 0) {
  std::printf(
      "{\"what\":\"%s\",\"count\":%ld,\"client_cpu_us\":%.3f,\"wall_us\":%.3f,"
      "\"client_bytes\":%.0f}\n",
      what, count, microseconds(processor) / static_cast<double>(count),
      microseconds(wall) / static_cast<double>(count), bytes);
  std::fflush(stdout);
}

class line {
 public:
  static constexpr long grants = 4'000;
  static constexpr duration longest = 20s;  // if grants are slow, fewer are enough
  static constexpr long at_once = 500;

  line(const holdfast::client& client, long length)
      : length_(length), lock_(client, "load", {.fair = true}) {}

  void measure(const holdfast::client& client) {
    auto held = lock_.acquire();
    if (!held) throw std::runtime_error(held.error().message());
    const double before = resident_bytes();
    // Not all at once: the engine must answer each within the deadline of its call.
    for (long first = 0; first < length_; first += at_once) {
      const long end = std::min(length_, first + at_once);
      for (long i = first; i < end; ++i) queue();
      await_length(client, end);
    }
    const double bytes = (resident_bytes() - before) / static_cast<double>(length_);
    wait_for_order();
    const duration processor = processor_time();
    const time_point start = clock::now();
    if (!held->release()) throw std::runtime_error("release");
    while (granted_ < grants && clock::now() < start + longest) std::this_thread::sleep_for(2ms);
    const long seen = granted_;
    if (seen == 0) throw std::runtime_error("not one grant");
    print("waiters", seen, processor_time() - processor, clock::now() - start, bytes);
    stop_.request_stop();
  }

 private:
  static void await_length(const holdfast::client& client, long length) {
    const time_point limit = clock::now() + 60s;
    for (;;) {
      const auto seen = client.inspect("load");
      if (seen && std::ssize(seen->waiters) >= length) return;
      if (clock::now() > limit) {
        throw std::runtime_error("they do not queue" + (seen ? "" : ": " + seen.error().message()));
      }
      std::this_thread::sleep_for(10ms);
    }
  }

  void queue() {
    lock_.async_acquire({}, stop_.get_token(), [this](result<lease> held) {
      if (!held) return;  // it is over
      if (granted_ + 1 < grants) {
        queue();
      } else {
        last_ = std::move(*held);  // nobody else's turn comes
      }
      ++granted_;
    });
  }

  const long length_;
  holdfast::mutex lock_;
  std::stop_source stop_;
  lease last_;                    // written before granted_ reaches its end
  std::atomic<long> granted_{0};  // written by one callback at a time
};

using taken = std::function<void(long, lease)>;

// Takes PREFIX0, PREFIX1, ... and passes each lease on; only some at once, as the engine must
// answer each within the deadline of its call.
void take_all(const holdfast::client& client, const std::string& prefix, long count,
              const taken& each) {
  constexpr long at_once = 500;
  for (long first = 0; first < count; first += at_once) {
    const long end = std::min(count, first + at_once);
    std::atomic<long> open{end - first};
    std::atomic<bool> failed{false};
    for (long i = first; i < end; ++i) {
      holdfast::mutex one(client, prefix + std::to_string(i), {.ttl = 30s});
      one.async_acquire({}, {}, [&, i](result<lease> held) {
        if (held) {
          each(i, std::move(*held));
        } else {
          failed = true;
        }
        if (--open == 0) open.notify_one();
      });
    }
    for (long left = open; left > 0; left = open) open.wait(left);
    if (failed) throw std::runtime_error("not held");
  }
}

constexpr long pairs = 10'000;

void one_pair(holdfast::mutex& lock) {
  auto held = lock.acquire();
  if (!held) throw std::runtime_error("a pair: " + held.error().message());
  if (auto left = held->release(); !left) {
    throw std::runtime_error("a pair: " + left.error().message());
  }
}

void measure_held(const holdfast::client& client, long count) {
  std::vector<lease> all(static_cast<std::size_t>(count));
  const double before = resident_bytes();
  take_all(client, "held/", count,
           [&](long i, lease held) { all[static_cast<std::size_t>(i)] = std::move(held); });
  const double bytes = (resident_bytes() - before) / static_cast<double>(count);
  holdfast::mutex one(client, "beside");
  wait_for_order();
  duration processor = processor_time();
  time_point start = clock::now();
  for (long i = 0; i < pairs; ++i) one_pair(one);
  print("pairs", pairs, processor_time() - processor, clock::now() - start, bytes);

  wait_for_order();
  constexpr duration period = 10s;  // a third of their ttl: each is renewed once
  processor = processor_time();
  start = clock::now();
  std::this_thread::sleep_for(period);
  print("renewals", count, processor_time() - processor, clock::now() - start);
  const bool valid =
      std::all_of(all.begin(), all.end(), [](const auto& each) { return each.valid(); });
  if (!valid) throw std::runtime_error("some were lost");
}

void measure_names(const holdfast::client& client, long count) {
  take_all(client, "names/", count, [](long, const lease&) {});
  wait_for_order();
  constexpr long stride = 7'919;  // a prime: neighbours in time are none in the engine
  const duration processor = processor_time();
  const time_point start = clock::now();
  for (long i = 0; i < pairs; ++i) {
    holdfast::mutex one(client, "names/" + std::to_string(i * stride % count));
    one_pair(one);
  }
  print("names", pairs, processor_time() - processor, clock::now() - start);
}

void run(const std::string& what, const std::string& url, long count) {
  auto client = holdfast::client::open(url);
  if (!client) throw std::runtime_error(client.error().message());
  if (what == "waiters") {
    line waiters(*client, count);
    waiters.measure(*client);
    client->close();  // before the lock goes: its callbacks end here
  } else {
    what == "names" ? measure_names(*client, count) : measure_held(*client, count);
    client->close();
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 4) throw std::runtime_error("needs what, URL, N");
    run(words[1], words[2], std::stol(words[3]));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "peer_load: %s\n", problem.what());
    return 1;
  }
  return 0;
}
