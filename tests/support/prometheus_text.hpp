// Reads the text format of Prometheus strictly: a line that is neither a comment nor a sample, a
// sample without its TYPE, a family in two places, a duplicate sample, a decreasing histogram, all
// fail the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

namespace holdfast::test {

class prometheus_text {
 public:
  using labels = std::map<std::string, std::string>;

  explicit prometheus_text(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.back() == '\n');
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) read(line);
    for (const auto& [key, value] : samples_) check_histogram(key);
  }

  [[nodiscard]] std::optional<double> value(const std::string& name, const labels& with) const {
    const auto found = samples_.find({name, with});
    if (found == samples_.end()) return std::nullopt;
    return found->second;
  }

 private:
  using key = std::pair<std::string, labels>;

  void read(const std::string& line) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line.substr(7));
      words >> family_ >> type_;
      EXPECT_TRUE(families_.insert(family_).second) << "twice: " << line;
      return;
    }
    if (line.starts_with("# HELP ")) return;
    std::size_t at = line.find_first_of("{ ");
    ASSERT_NE(at, std::string::npos) << line;
    const std::string name = line.substr(0, at);
    labels with;
    if (line[at] == '{') at = read_labels(line, at + 1, with);
    ASSERT_EQ(line[at], ' ') << line;
    const std::string number = line.substr(at + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    EXPECT_EQ(*end, '\0') << line;
    EXPECT_EQ(type_ == "histogram" ? name.substr(0, name.rfind('_')) : name, family_) << line;
    EXPECT_TRUE(samples_.emplace(key{name, with}, value).second) << "twice: " << line;
  }

  static std::size_t read_labels(const std::string& line, std::size_t at, labels& into) {
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      const std::string name = line.substr(at, equals - at);
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] != '\\') {
          value += line[at];
          continue;
        }
        ++at;
        value += line[at] == 'n' ? '\n' : line[at];
      }
      ++at;
      if (at < line.size() && line[at] == ',') ++at;
      EXPECT_TRUE(into.emplace(name, value).second) << line;
    }
    return at + 1;
  }

  // Buckets grow with their bound, and the last one is the count.
  void check_histogram(const key& sum) const {
    const std::string& name = sum.first;
    if (!name.ends_with("_sum")) return;
    const std::string family = name.substr(0, name.size() - 4);
    std::map<double, double> buckets;
    for (const auto& [each, value] : samples_) {
      if (each.first != family + "_bucket") continue;
      labels rest = each.second;
      const std::string bound = rest["le"];
      rest.erase("le");
      if (rest != sum.second) continue;
      buckets[bound == "+Inf" ? std::numeric_limits<double>::infinity()
                              : std::strtod(bound.c_str(), nullptr)] = value;
    }
    ASSERT_FALSE(buckets.empty()) << name;
    double before = 0;
    for (const auto& [bound, count] : buckets) {
      EXPECT_GE(count, before) << name << " " << bound;
      before = count;
    }
    EXPECT_EQ(value(family + "_count", sum.second), before) << name;
  }

  std::map<key, double> samples_;
  std::set<std::string> families_;
  std::string family_;
  std::string type_;
};

}  // namespace holdfast::test
