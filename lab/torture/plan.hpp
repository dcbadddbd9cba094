// What a torture will do, drawn from its seed before anything runs: so that it can be stored,
// looked at, and repeated.
#pragma once

#include "sim/checker.hpp"
#include "torture/vocabulary.hpp"

#include <holdfast/clock.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::torture {

// One fault: when, counted from the start of the run, for how long, and at whom.
struct order {
  fault what{};
  duration begin{};
  duration length{};         // zero: over at once
  std::uint32_t target = 0;  // a client, or a server if there are several
};

struct plan {
  std::string engine;  // to be started; empty: an existing one, by URL
  std::uint32_t clients = 6;
  std::uint32_t threads = 2;  // of each client
  duration length = std::chrono::seconds(30);
  duration ttl = std::chrono::seconds(1);
  std::uint64_t seed = 1;
  std::vector<workload> workloads;
  std::vector<fault> faults;
  std::vector<order> schedule;
};

// Begin and end of every fault lie within the run. Two lanes: at most one fault of a client and one
// of a server or the network at a time. Every kind comes up once before any comes up twice.
std::vector<order> make_schedule(const plan& wanted);

struct resource {
  std::string name;
  workload used_by{};
  sim::facts::resource rule;
};

// What the clients compete for. Latches are not among them: each is new.
std::vector<resource> resources_of(const plan& wanted);

inline constexpr std::int32_t first_latch = 1000;  // numbers of latches in records begin here

nlohmann::json to_json(const plan& wanted);
// Throws std::runtime_error if it is not a plan, or out of limits: the file may come from anywhere.
plan plan_from(const nlohmann::json& read);

}  // namespace holdfast::torture
