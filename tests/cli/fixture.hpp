// A separate HOME for every test, and the commands that a user types there.
#pragma once

#include "cli/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace holdfast::cli_test {

class command_line : public ::testing::Test {
 protected:
  answer type(const words& arguments) { return shell_.holdfast(arguments); }
  process begin(const words& arguments) { return shell_.start_holdfast(arguments); }

  // A holder that keeps the lock until it is told to end, or killed.
  process hold(const std::string& name, const words& options = {}) {
    words line{"run"};
    line.insert(line.end(), options.begin(), options.end());
    line.insert(line.end(), {name, "--", "sh", "-c", "echo held $$; exec sleep 1000"});
    process holder = begin(line);
    if (!holder.says("held")) throw std::runtime_error("no holder: " + holder.err());
    return holder;
  }
  // The process id that a script of ours printed after the word.
  static pid_t pid_after(const std::string& word, const std::string& text) {
    const auto at = text.find(word + " ");
    if (at == std::string::npos) throw std::runtime_error("no " + word + " in: " + text);
    return std::stoi(text.substr(at + word.size() + 1));
  }
  // Waits until this many wait for the name.
  bool waiters(const std::string& name, int count) {
    const std::string wanted = "\"waiters\":" + std::to_string(count);
    return eventually([&] {
      const std::string all = type({"ls", "--json"}).out;
      const auto at = all.find("\"name\":\"" + name + "\"");
      return at != std::string::npos &&
             all.substr(at, all.find('}', at) - at).find(wanted) != std::string::npos;
    });
  }
  bool is_free(const std::string& name) {
    return eventually([&] {
      return type({"show", name, "--json"}).out ==
             "{\"name\":\"" + name + "\",\"holders\":[],\"waiters\":[]}\n";
    });
  }
  static int lines(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  folder home_;
  shell shell_{home_};
};

}  // namespace holdfast::cli_test
