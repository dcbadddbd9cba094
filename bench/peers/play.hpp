// What the peers in C++ share: threads that acquire and release locks, and counters.
//
//   PROGRAM ... ADDRESS THREADS own|same MODE HOLD_MS NAME COUNT
//
// Speaks as bench/peers/java/Peer.java does.
#pragma once

#include "tools/bench/histogram.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace peer {

using holdfast::clock;
using holdfast::time_point;
using holdfast::cli::histogram;

// One lock of one thread. `shared`: for readers.
struct pair {
  std::function<void(bool shared)> take;
  std::function<void(bool shared)> give;
};

// Makes the lock of this name.
using source = std::function<pair(const std::string& name)>;

struct tally {
  std::uint64_t grants = 0;
  std::uint64_t pairs = 0;
  std::uint64_t counted = 0;
  histogram waits;
};

struct one_round {
  time_point from;
  time_point end;
  std::chrono::milliseconds hold{};
  int reads = 0;                            // percent
  volatile std::uint64_t* count = nullptr;  // in memory that all processes share; none: not counted
};

inline tally work(const pair& lock, const one_round& round) {
  tally mine;
  std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<int> percent(0, 99);
  for (time_point asked = clock::now(); asked < round.end;) {
    const bool reading = round.reads > 0 && percent(random) < round.reads;
    const bool counting = round.count != nullptr && !reading;
    lock.take(reading);
    const time_point granted = clock::now();
    const std::uint64_t before = counting ? *round.count : 0;
    if (round.hold.count() > 0) std::this_thread::sleep_for(round.hold);
    if (counting) {
      *round.count = before + 1;
      ++mine.counted;
    }
    lock.give(reading);
    ++mine.pairs;
    const time_point done = clock::now();
    if (done >= round.from && done <= round.end) ++mine.grants;
    if (asked >= round.from) mine.waits.record(granted - asked);
    asked = done;
  }
  return mine;
}

inline void print(const std::vector<tally>& all) {
  tally sum;
  std::string grants;
  for (const tally& one : all) {
    grants += (grants.empty() ? "" : ",") + std::to_string(one.grants);
    sum.pairs += one.pairs;
    sum.counted += one.counted;
    sum.waits.merge(one.waits);
  }
  std::string cells;
  for (const auto& [cell, count] : sum.waits.cells()) {
    cells += (cells.empty() ? "[" : ",[") +
             std::to_string(static_cast<double>(histogram::top(cell).count()) / 1e3) + "," +
             std::to_string(count) + "]";
  }
  std::printf(
      "{\"grants\":[%s],\"pairs\":%llu,\"counted\":%llu,\"max_us\":%f,\"histogram\":[%s]}\n",
      grants.c_str(), static_cast<unsigned long long>(sum.pairs),
      static_cast<unsigned long long>(sum.counted),
      static_cast<double>(sum.waits.greatest().count()) / 1e3, cells.c_str());
  std::fflush(stdout);
}

inline volatile std::uint64_t* shared_count(const std::string& path) {
  if (path == "-") return nullptr;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* memory =
      ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("no such count: " + path);
  return static_cast<volatile std::uint64_t*>(memory);
}

// `words`: from THREADS on.
inline void play(const std::vector<std::string>& words, const source& make) {
  std::vector<pair> locks;
  for (int i = 0; i < std::stoi(words.at(0)); ++i) {
    const std::string which = words.at(1) == "own" ? "-" + std::to_string(i) : "";
    locks.push_back(make(words.at(4) + which));
  }
  one_round round;
  round.reads = words.at(2).starts_with("rw:") ? std::stoi(words.at(2).substr(3)) : 0;
  round.hold = std::chrono::milliseconds(std::stoi(words.at(3)));
  round.count = shared_count(words.at(5));
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    int warm = 0;
    int length = 0;
    std::istringstream(line) >> warm >> length;
    round.from = clock::now() + std::chrono::milliseconds(warm);
    round.end = round.from + std::chrono::milliseconds(length);
    std::vector<tally> all(locks.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          all[i] = work(locks[i], round);
        } catch (const std::exception& problem) {
          std::fprintf(stderr, "error: %s\n", problem.what());
          std::_Exit(1);
        }
      });
    }
    threads.clear();
    print(all);
  }
}

// What main() returns.
inline int answer(const char* program, const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", program, problem.what());
    return 1;
  }
  return 0;
}

}  // namespace peer
