// A shared library that is loaded when it is first needed. The drivers of the SQL servers bring some
// twenty libraries with them (Kerberos, LDAP, GnuTLS), and OpenSSL takes a millisecond to load: a program
// that uses another engine does without them, and need not even have them installed.
#pragma once

#include <holdfast/result.hpp>

#include <atomic>

namespace holdfast::runtime {

// Thread-safe; what was loaded stays until the process ends.
class lazy_library {
 public:
  // `file`: the SONAME that the headers belong to, so that a program that has already loaded it
  // shares it; `package`: where to get it, for messages.
  constexpr lazy_library(const char* file, const char* package) noexcept
      : file_(file), package_(package) {}

  // unavailable: it is not installed, or cannot be loaded.
  result<void> load() const;

  // Ends the process with a message if the library or the function is missing: load() is called
  // first, when a store is opened.
  [[nodiscard]] void* address(const char* name) const;

 private:
  const char* file_;
  const char* package_;
};

// A library that is linked after all: static, or in a folder that the loader does not search.
inline constexpr lazy_library linked(nullptr, nullptr);

// A function of such a library, called as if it were linked. An object, not a function: in its namespace
// it hides the global declaration of the same name, which argument-dependent lookup would find.
template <class Signature>
class lazy_function;

template <class Result, class... Arguments>
class lazy_function<Result(Arguments...)> {
 public:
  constexpr lazy_function(const lazy_library& from, const char* name) noexcept
      : from_(from), name_(name) {}

  Result operator()(Arguments... arguments) const {
    auto* real = real_.load(std::memory_order_acquire);
    if (real == nullptr) {
      real = reinterpret_cast<Result (*)(Arguments...)>(from_.address(name_));
      real_.store(real, std::memory_order_release);
    }
    return real(arguments...);
  }

 private:
  const lazy_library& from_;
  const char* name_;
  mutable std::atomic<Result (*)(Arguments...)> real_{nullptr};
};

}  // namespace holdfast::runtime

// Declares such a function under its own name.
#define HOLDFAST_LAZY(from, name) \
  inline constinit const ::holdfast::runtime::lazy_function<decltype(::name)> name(from, #name)
