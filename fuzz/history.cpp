// The history of a torture, as a file may hold it: read, judged, counted and drawn.
// sources: lab/torture/run_record.cpp lab/torture/plan.cpp lab/torture/vocabulary.cpp lab/torture/judge.cpp
// sources: lab/torture/figures.cpp lab/sim/record.cpp src/core/result.cpp
#include "torture/figures.hpp"
#include "torture/judge.hpp"
#include "torture/run_record.hpp"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::torture;
  run_record told;
  try {
    told = run_record_from({reinterpret_cast<const char*>(data), size});
  } catch (const std::runtime_error&) {
    return 0;
  }
  static_cast<void>(figures_of(told));
  for (const finding& each : judge(told).violations) static_cast<void>(to_text(each));
  // What is written can be read, and is the same.
  const std::string text = to_text(told);
  if (to_text(run_record_from(text)) != text) std::abort();
  return 0;
}
