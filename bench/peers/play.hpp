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

// Counts what one thread, or one coroutine, does in a round.
class scribe {
 public:
  explicit scribe(const one_round& round) : round_(round) {}
  // Whether there is time for another pair.
  [[nodiscard]] bool next() {
    reading_ = round_.reads > 0 && percent_(random_) < round_.reads;
    return asked_ < round_.end;
  }
  [[nodiscard]] bool reading() const { return reading_; }
  void granted() {
    granted_ = clock::now();
    const bool counting = round_.count != nullptr && !reading_;
    const std::uint64_t before = counting ? *round_.count : 0;
    if (round_.hold.count() > 0) std::this_thread::sleep_for(round_.hold);
    if (counting) {
      *round_.count = before + 1;
      ++mine_.counted;
    }
  }
  void released() {
    ++mine_.pairs;
    const time_point done = clock::now();
    if (done >= round_.from && done <= round_.end) ++mine_.grants;
    if (asked_ >= round_.from) mine_.waits.record(granted_ - asked_);
    asked_ = done;
  }
  [[nodiscard]] const tally& result() const { return mine_; }

 private:
  const one_round& round_;
  std::minstd_rand random_{std::random_device{}()};
  std::uniform_int_distribution<int> percent_{0, 99};
  bool reading_ = false;
  time_point asked_ = clock::now();
  time_point granted_;
  tally mine_;
};

inline tally work(const pair& lock, const one_round& round) {
  scribe scribe(round);
  while (scribe.next()) {
    lock.take(scribe.reading());
    scribe.granted();
    lock.give(scribe.reading());
    scribe.released();
  }
  return scribe.result();
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

// Their names. `words`: from THREADS on.
inline std::vector<std::string> names_of(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (int i = 0; i < std::stoi(words.at(0)); ++i) {
    names.push_back(words.at(4) + (words.at(1) == "own" ? "-" + std::to_string(i) : ""));
  }
  return names;
}

// Says what went wrong; no destructor of what others still use runs.
[[noreturn]] inline void give_up(const std::string& problem) {
  std::fprintf(stderr, "error: %s\n", problem.c_str());
  std::_Exit(1);
}

// `play_one`: plays a round with all locks.
inline void play_rounds(const std::vector<std::string>& words,
                        const std::function<std::vector<tally>(const one_round&)>& play_one) {
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
    print(play_one(round));
  }
}

// A thread for each lock.
inline void play(const std::vector<std::string>& words, const source& make) {
  std::vector<pair> locks;
  for (const std::string& name : names_of(words)) locks.push_back(make(name));
  play_rounds(words, [&](const one_round& round) {
    std::vector<tally> all(locks.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          all[i] = work(locks[i], round);
        } catch (const std::exception& problem) {
          give_up(problem.what());
        }
      });
    }
    threads.clear();
    return all;
  });
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
