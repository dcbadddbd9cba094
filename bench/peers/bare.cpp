// The bare drivers as peers: one connection per thread, each thread its own lock.
//
//   peer_bare redis|sqlite|postgresql ADDRESS THREADS own mutex 0 WARM_MS RUN_MS PREFIX
//
// ADDRESS: HOST:PORT, or a folder for sqlite. Speaks as bench/peers/java/Peer.java does.
#include "../bare_postgresql.hpp"
#include "../bare_redis_pair.hpp"
#include "../bare_sqlite.hpp"
#include "cli/bench/histogram.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using holdfast::clock;
using holdfast::duration;
using holdfast::time_point;
using holdfast::cli::histogram;

// As Debian's build of SQLite has it, and the store.
constexpr int page_size = 4096;

// Takes and gives back once; answers when it had it.
using pair = std::function<time_point()>;

pair make_pair(const std::string& kind, const std::string& address, const std::string& name) {
  const std::string port = address.substr(address.rfind(':') + 1);
  if (kind == "redis") {
    const auto one = std::make_shared<holdfast::bench::bare_pair>(
        static_cast<std::uint16_t>(std::stoi(port)), name);
    return [one] {
      one->take();
      const time_point granted = clock::now();
      one->give();
      return granted;
    };
  }
  if (kind == "sqlite") {
    const auto one = std::make_shared<bench::bare_sqlite>(address + "/" + name, page_size);
    return [one] {
      one->transaction();
      const time_point granted = clock::now();
      one->transaction();
      return granted;
    };
  }
  const auto one = std::make_shared<bench::bare_row>(
      "host=127.0.0.1 user=tester dbname=postgres port=" + port, name);
  return [one] {
    if (!one->take()) throw std::runtime_error("not free");
    const time_point granted = clock::now();
    one->give();
    return granted;
  };
}

struct tally {
  std::uint64_t grants = 0;
  histogram waits;
};

void print(const std::vector<tally>& all) {
  histogram sum;
  std::string grants;
  for (const tally& one : all) {
    grants += (grants.empty() ? "" : ",") + std::to_string(one.grants);
    sum.merge(one.waits);
  }
  std::string cells;
  for (const auto& [cell, count] : sum.cells()) {
    cells += (cells.empty() ? "[" : ",[") +
             std::to_string(static_cast<double>(histogram::top(cell).count()) / 1e3) + "," +
             std::to_string(count) + "]";
  }
  std::printf("{\"grants\":[%s],\"max_us\":%f,\"histogram\":[%s]}\n", grants.c_str(),
              static_cast<double>(sum.greatest().count()) / 1e3, cells.c_str());
}

void run(const std::vector<std::string>& words) {
  const auto milliseconds = [&](std::size_t at) {
    return std::chrono::milliseconds(std::stoi(words.at(at)));
  };
  std::vector<tally> all(static_cast<std::size_t>(std::stoi(words.at(2))));
  std::latch ready(static_cast<std::ptrdiff_t>(all.size()));
  std::latch go(1);
  time_point from;
  time_point end;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      const pair work = make_pair(words.at(0), words.at(1), words.at(8) + std::to_string(i));
      ready.count_down();
      go.wait();
      for (time_point asked = clock::now(); asked < end;) {
        const time_point granted = work();
        const time_point done = clock::now();
        if (done >= from && done <= end) ++all[i].grants;
        if (asked >= from) all[i].waits.record(granted - asked);
        asked = done;
      }
    });
  }
  ready.wait();
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  from = clock::now() + milliseconds(6);
  end = from + milliseconds(7);
  go.count_down();
  threads.clear();
  print(all);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run({arguments + std::min(count, 1), arguments + count});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "peer_bare: %s\n", problem.what());
    return 1;
  }
  return 0;
}
