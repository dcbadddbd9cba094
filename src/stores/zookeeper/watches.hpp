// The watches of a connection: who is told when a node changes. A watch fires once.
#pragma once

#include "stores/zookeeper/protocol.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

// Called under no lock, on a reactor's thread.
using watcher = std::function<void(const watch_event&)>;

struct fired {
  std::shared_ptr<watcher> who;
  watch_event event;
};

// Not thread-safe.
class watch_table {
 public:
  // With the request that sets it, before it is sent: the event may overtake the answer.
  void add(opcode by, const std::string& path, std::shared_ptr<watcher> who) {
    auto& those = (by == opcode::get_children ? children_ : nodes_)[path];
    if (std::find(those.begin(), those.end(), who) == those.end()) those.push_back(std::move(who));
  }
  // The server did not set it after all.
  void drop(opcode by, const std::string& path, const std::shared_ptr<watcher>& who) {
    auto& from = by == opcode::get_children ? children_ : nodes_;
    const auto found = from.find(path);
    if (found == from.end()) return;
    std::erase(found->second, who);
    if (found->second.empty()) from.erase(found);
  }

  void take(const watch_event& event, std::vector<fired>& into) {
    using type = watch_event::type;
    if (event.what != type::children_changed) take(nodes_, event, into);
    if (event.what == type::children_changed || event.what == type::deleted) {
      take(children_, event, into);
    }
  }
  // The connection is another one: all are to look again.
  void take_all(std::vector<fired>& into) {
    for (auto* each : {&nodes_, &children_}) {
      for (auto& [path, those] : *each) {
        for (auto& who : those) {
          into.push_back({std::move(who), {watch_event::type::reset, path}});
        }
      }
      each->clear();
    }
  }

 private:
  using table = std::unordered_map<std::string, std::vector<std::shared_ptr<watcher>>>;

  static void take(table& from, const watch_event& event, std::vector<fired>& into) {
    const auto found = from.find(event.path);
    if (found == from.end()) return;
    for (auto& who : found->second) into.push_back({std::move(who), event});
    from.erase(found);
  }

  table nodes_;     // of data and existence
  table children_;  // of lists
};

}  // namespace holdfast::zookeeper
