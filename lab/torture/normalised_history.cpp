#include "torture/normalised_history.hpp"

#include <algorithm>
#include <unordered_map>

namespace holdfast::torture {

namespace {

bool doubtful(const std::vector<doubt>& doubts, sim::moment at) {
  return std::any_of(doubts.begin(), doubts.end(),
                     [&](const doubt& each) { return each.begin <= at && at <= each.end; });
}

bool forgets(const run_record& told, const sim::record& line) {
  return line.kind == sim::what::trouble_began &&
         std::find(told.forgets.begin(), told.forgets.end(), static_cast<fault>(line.number)) !=
             told.forgets.end();
}

}  // namespace

std::vector<doubt> doubts_of(const run_record& told) {
  std::vector<doubt> all;
  for (const sim::record& line : told.records) {
    const auto what = static_cast<fault>(line.number);
    if (std::find(told.forgets.begin(), told.forgets.end(), what) == told.forgets.end()) continue;
    if (line.kind == sim::what::trouble_began) all.push_back({line.at, sim::moment::max()});
    if (line.kind == sim::what::trouble_ended && !all.empty()) {
      // Until its holder has learned it: a third of the ttl, or its end.
      all.back().end = line.at + told.wanted.ttl * 2;
    }
  }
  return all;
}

std::vector<sim::record> normalised_history_of(const run_record& told) {
  const std::vector<doubt> doubts = doubts_of(told);
  std::unordered_map<std::int32_t, const sim::record*> grants;
  for (const sim::record& line : told.records) {
    if (line.kind == sim::what::acquire_granted) grants.try_emplace(line.hold, &line);
  }
  std::vector<sim::record> all;
  all.reserve(told.records.size() * 2);
  for (const sim::record& line : told.records) {
    all.push_back(line);
    if (line.kind == sim::what::acquire_granted) {
      all.back().until = told.wanted.ttl;
      sim::record begin = line;
      begin.kind = sim::what::validity_began;
      begin.until = {};
      begin.number = doubtful(doubts, line.at) ? 1 : 0;
      all.push_back(begin);
    } else if (line.kind == sim::what::validity_ended) {
      const auto grant = grants.find(line.hold);
      if (grant == grants.end()) {
        all.pop_back();
        continue;
      }
      // Of a killed client it is written by who killed it, who knows neither of what it was the end,
      // nor that it may have been granted while the signal was on its way.
      all.back().resource = grant->second->resource;
      all.back().fence = grant->second->fence;
      all.back().at = std::max(line.at, grant->second->at);
    } else if (forgets(told, line)) {
      all.push_back(line);
      all.back().kind = sim::what::state_lost;
    }
  }
  const auto last = [](const sim::record& line) { return line.kind == sim::what::validity_ended; };
  std::stable_sort(all.begin(), all.end(), [&](const sim::record& left, const sim::record& right) {
    return left.at != right.at ? left.at < right.at : !last(left) && last(right);
  });
  return all;
}

}  // namespace holdfast::torture
