// What the server of one connection should know: scripts and libraries, by their addresses.
//
// Not thread-safe.
#pragma once

#include <set>

namespace holdfast::redis {

class known_sources {
 public:
  // Whether a call has to bring its source, and from now on knows it. A library is taken to be there until a call
  // finds it missing: calls that are under way then find the same. A script goes in full the first time, or a call of
  // another script, that the server knows, would overtake it.
  bool brings(const void* source, bool is_library) {
    return is_library ? missing_libraries_.erase(source) > 0 : scripts_.insert(source).second;
  }

  // The server said that it does not know it.
  void forget(const void* source, bool is_library) {
    if (is_library) {
      missing_libraries_.insert(source);
    } else {
      scripts_.erase(source);
    }
  }

  // Another server, perhaps.
  void clear() noexcept {
    missing_libraries_.clear();
    scripts_.clear();
  }

 private:
  std::set<const void*> missing_libraries_;
  std::set<const void*> scripts_;
};

}  // namespace holdfast::redis
