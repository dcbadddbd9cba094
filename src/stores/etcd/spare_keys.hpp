// Keys that claims of ours have left behind, for the next ones. etcd keeps a deleted key in its index until it is
// compacted, and a look at a line passes all of them: with a new key for each claim, every grant would make the next
// one dearer.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

// Not thread-safe.
class spare_keys {
 public:
  static constexpr std::size_t limit = 4096;  // of all together; beyond it all are forgotten

  // `where`: all of a key but its id.
  std::optional<std::string> take(const std::string& where) {
    const auto found = ids_.find(where);
    if (found == ids_.end()) return std::nullopt;
    std::string id = std::move(found->second.back());
    found->second.pop_back();
    if (found->second.empty()) ids_.erase(found);
    --count_;
    return id;
  }

  void add(const std::string& where, std::string id) {
    if (count_ >= limit) {
      ids_.clear();
      count_ = 0;
    }
    ids_[where].push_back(std::move(id));
    ++count_;
  }

 private:
  std::map<std::string, std::vector<std::string>> ids_;  // none is empty
  std::size_t count_ = 0;
};

}  // namespace holdfast::etcd
