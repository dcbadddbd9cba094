// A shared library that is loaded when it is first needed. The drivers of the SQL servers bring some twenty
// libraries with them (Kerberos, LDAP, GnuTLS), whose loading took most of the time of a `holdfast run`; who
// wraps a job with another engine need not even have them installed.
#pragma once

#include <holdfast/result.hpp>

#include <string_view>

namespace holdfast::cli::late {

// Thread-safe; what was loaded stays until the process ends.
class library {
 public:
  // `file`: by its SONAME, the one that the headers belong to; `package`: what brings it, for messages.
  constexpr library(const char* file, const char* package) noexcept
      : file_(file), package_(package) {}

  // unavailable: it is not installed, or cannot be loaded.
  result<void> load() const;

  // Ends the process with a message where the library or the function is missing: who may meet that
  // asks load() first.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  [[nodiscard]] void* address(const char* name) const;

  const char* file_;
  const char* package_;
};

inline constexpr library libpq("libpq.so.5", "libpq5");
inline constexpr library libmariadb("libmariadb.so.3", "libmariadb3");

// What this engine, named by its scheme, needs. unavailable: it is missing.
result<void> load_driver_of(std::string_view engine);

}  // namespace holdfast::cli::late

// Defines a function of a C library that calls the one in `from`, looked up once.
#define HOLDFAST_LATE(from, type, name, parameters, arguments)        \
  type name parameters {                                              \
    static auto* const real = (from).function<decltype(name)>(#name); \
    return real arguments;                                            \
  }
