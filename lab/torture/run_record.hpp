// Everything that happened in a run: enough to judge it again elsewhere, and to repeat it.
#pragma once

#include "sim/record.hpp"
#include "torture/plan.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::torture {

struct run_record {
  plan wanted;
  std::string engine;            // the engine's own name
  std::vector<fault> forgets;    // faults after which this engine may have forgotten grants
  bool looked_for_leaks = true;  // false: the engine cannot list
  duration wake_bound{};         // how long a free resource may stay so while somebody waits
  duration order_margin{};       // after which a fair waiter that was told nothing is in the queue
  std::vector<resource> resources;
  std::vector<sim::record> records;  // by time
};

// One JSON document. Throws std::runtime_error if it cannot be written.
void save(const run_record& told, const std::filesystem::path& file);
// Throws std::runtime_error, with the reason, if the file was not written by save().
run_record load_run_record(const std::filesystem::path& file);
run_record run_record_from(const std::string& text);
std::string to_text(const run_record& told);

}  // namespace holdfast::torture
