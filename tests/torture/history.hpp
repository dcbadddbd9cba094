// Histories written by hand: one line per event that a client saw, in milliseconds.
#pragma once

#include "torture/judge.hpp"
#include "torture/run_record.hpp"

#include <holdfast/result.hpp>

#include <algorithm>
#include <string>

namespace holdfast::torture {

class history {
 public:
  using what = sim::what;

  explicit history(sim::facts::resource rule = {}) {
    run_record_.engine = "by hand";
    run_record_.wanted.ttl = std::chrono::milliseconds(1000);
    run_record_.wake_bound = std::chrono::milliseconds(3000);
    run_record_.order_margin = std::chrono::milliseconds(250);
    run_record_.resources.push_back({"lock", workload::mutex, rule});
  }

  history& line(int at, what kind, std::int32_t process, std::int32_t hold = sim::nobody,
                std::uint64_t fence = 0, std::int64_t number = 0) {
    sim::record added;
    added.at = std::chrono::milliseconds(at);
    added.kind = kind;
    added.process = process;
    added.hold = added.acquisition = hold;
    added.resource = hold == sim::nobody ? sim::nobody : 0;
    added.fence = fence;
    added.number = number;
    added.mode = mode_;
    added.fair = fair_;
    if (kind == what::acquire_invoked) added.until = forever;
    run_record_.records.push_back(added);
    return *this;
  }
  history& asks(int at, std::int32_t process, std::int32_t hold) {
    return line(at, what::acquire_invoked, process, hold, 0, 1);
  }
  // It is told that it is in the queue.
  history& in_line(int at, std::int32_t process, std::int32_t hold) {
    return line(at, what::attempt_answered, process, hold, 0,
                static_cast<std::int64_t>(sim::answer::queued));
  }
  history& gives_up(int at, std::int32_t process, std::int32_t hold, errc why) {
    return line(at, what::acquire_failed, process, hold, 0, static_cast<std::int64_t>(why));
  }
  history& granted(int at, std::int32_t process, std::int32_t hold, std::uint64_t fence) {
    return line(at, what::acquire_granted, process, hold, fence);
  }
  history& ends(int at, std::int32_t process, std::int32_t hold) {
    return line(at, what::validity_ended, process, hold);
  }
  history& held(int from, int to, std::int32_t process, std::int32_t hold, std::uint64_t fence) {
    return asks(from, process, hold).granted(from, process, hold, fence).ends(to, process, hold);
  }
  history& as(spi::mode mode) {
    mode_ = mode;
    return *this;
  }
  history& fair() {
    fair_ = true;
    return *this;
  }
  history& forgets(fault which) {
    run_record_.forgets.push_back(which);
    return *this;
  }
  run_record& told() { return run_record_; }

  // The names of the checkers that found something.
  std::string findings() {
    std::stable_sort(
        run_record_.records.begin(), run_record_.records.end(),
        [](const sim::record& left, const sim::record& right) { return left.at < right.at; });
    std::string names;
    for (const finding& each : judge(run_record_).violations) {
      names += (names.empty() ? "" : ", ") + each.checker;
    }
    return names;
  }

 private:
  run_record run_record_;
  spi::mode mode_ = spi::mode::exclusive;
  bool fair_ = false;
};

}  // namespace holdfast::torture
