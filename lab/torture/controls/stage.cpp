#include "torture/controls/stage.hpp"

#include <holdfast/result.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::torture {

using std::chrono::milliseconds;

stage::stage(std::string engine, sim::facts::resource rule) {
  run_record_.engine = std::move(engine);
  run_record_.wanted.clients = 3;
  run_record_.wanted.ttl = milliseconds(200);
  run_record_.wake_bound = milliseconds(600);
  run_record_.order_margin = std::chrono::seconds(1);
  run_record_.resources.push_back({"lock", workload::mutex, rule});
}

sim::record& stage::of(std::int32_t hold) { return asked_.at(static_cast<std::size_t>(hold) - 1); }

sim::record& stage::add(sim::what kind, sim::record line) {
  line.kind = kind;
  line.at = now();
  run_record_.records.push_back(line);
  return run_record_.records.back();
}

std::int32_t stage::asks(std::int32_t client, bool fair, spi::mode mode) {
  sim::record line;
  line.process = client;
  line.resource = 0;
  line.hold = line.acquisition = static_cast<std::int32_t>(asked_.size()) + 1;
  line.fair = fair;
  line.mode = mode;
  line.number = 1;
  line.until = forever;
  add(sim::what::acquire_invoked, line);
  line.number = 0;
  line.until = {};
  asked_.push_back(line);
  return line.hold;
}

void stage::granted(std::int32_t hold, std::uint64_t fence) {
  of(hold).fence = fence != 0 ? fence : ++fence_;
  add(sim::what::acquire_granted, of(hold)).until = run_record_.wanted.ttl;
}

void stage::queued(std::int32_t hold) {
  add(sim::what::attempt_answered, of(hold)).number =
      static_cast<std::int64_t>(sim::answer::queued);
}

void stage::times_out(std::int32_t hold) {
  add(sim::what::acquire_failed, of(hold)).number = static_cast<std::int64_t>(errc::timed_out);
}

void stage::gives_up(std::int32_t hold) { add(sim::what::validity_ended, of(hold)); }

void stage::releases(std::int32_t hold) {
  add(sim::what::validity_ended, of(hold));
  add(sim::what::release_invoked, of(hold));
}

void stage::writes(std::int32_t hold) {
  const bool accepted = of(hold).fence >= greatest_;
  greatest_ = std::max(greatest_, of(hold).fence);
  add(accepted ? sim::what::write_accepted : sim::what::write_refused, of(hold)).number = 1;
}

void stage::killed(std::int32_t client) {
  sim::record line;
  line.process = client;
  add(sim::what::killed, line);
  // The hold that it trusted is over.
  for (const sim::record& each : asked_) {
    if (each.process == client && each.fence != 0) add(sim::what::validity_ended, each);
  }
}

void stage::paused(std::int32_t client) {
  sim::record line;
  line.process = client;
  add(sim::what::paused, line);
}

void stage::resumed(std::int32_t client) {
  sim::record line;
  line.process = client;
  add(sim::what::resumed, line);
}

}  // namespace holdfast::torture
