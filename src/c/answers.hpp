// How the C interface answers and reads its arguments: results become an hf_status and an hf_error,
// nothing is thrown, structures of another version are read and filled as far as both sides know
// them.
#pragma once

#include "runtime/fork_guard.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/holdfast.h>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast::c {

// Fills `error`, unless it is null.
hf_status report(hf_error* error, hf_status code, std::string_view message, bool unsent = false);
hf_status report(hf_error* error, const holdfast::error& cause);
// The exception that is being handled.
hf_status report_exception(hf_error* error) noexcept;

inline hf_status report(hf_error* error, const result<void>& answer) {
  return answer ? report(error, HF_OK, {}) : report(error, answer.error());
}

// Wraps every call: runs `call` and lets no exception out. The answer is what it returns: nothing,
// a result<void>, or the status of what it has reported itself. Mistakes of the caller are thrown
// as lock_error.
template <class Call>
hf_status guarded(hf_error* error, Call&& call) noexcept {
  try {
    using answer = std::invoke_result_t<Call>;
    if constexpr (std::is_same_v<answer, hf_status>) {
      return std::forward<Call>(call)();
    } else if constexpr (std::is_void_v<answer>) {
      std::forward<Call>(call)();
      return report(error, HF_OK, {});
    } else {
      return report(error, std::forward<Call>(call)());
    }
  } catch (...) {
    return report_exception(error);
  }
}

// The process in which a handle was made. A handle's mutex may be locked forever in a forked child,
// and the child must not touch descriptors that it shares with its parent.
class home {
 public:
  [[nodiscard]] bool left() const noexcept { return here_.forked(); }

 private:
  runtime::fork_guard here_{};  // one load; getpid() would be a system call in every call
};

[[noreturn]] void mistake(errc code, const std::string& what);

// Throw invalid: the argument is missing; cancelled: the handle belongs to the parent process.
inline void need(const void* argument, const char* what) {
  if (argument == nullptr) mistake(errc::invalid, std::string(what) + " is missing");
}
template <class Handle>
Handle& use(Handle* handle, const char* what) {
  need(handle, what);
  if (handle->made_in.left()) {
    mistake(errc::cancelled, "made in the parent process; open a client in the child");
  }
  return *handle;
}

std::string_view text_of(const char* data, std::size_t length);
inline std::string_view text_of(const hf_text& text) { return text_of(text.data, text.length); }
inline hf_text to_text(const std::string& text) { return {text.data(), text.size()}; }

inline duration duration_of(hf_nanoseconds time) { return duration(time); }
inline hf_nanoseconds to_time(const std::optional<duration>& time) {
  return time ? time->count() : -1;
}

// Converts the caller's structure to our version of it. Null: all defaults. Throws invalid: it is
// smaller than the first version of it, or sets something that this version does not know.
template <class Struct>
Struct read_struct(const Struct* given, const char* what) {
  Struct read{};
  read.size = sizeof(Struct);
  if (given == nullptr) return read;
  if (given->size < sizeof(Struct)) mistake(errc::invalid, std::string(what) + ": size is not set");
  const auto* rest = reinterpret_cast<const unsigned char*>(given) + sizeof(Struct);
  if (!std::all_of(rest, rest + (given->size - sizeof(Struct)),
                   [](unsigned char byte) { return byte == 0; })) {
    mistake(errc::invalid, std::string(what) + ": an option of a newer version is set");
  }
  std::memcpy(&read, given, sizeof(Struct));
  return read;
}

// Fills what the caller has room for.
template <class Struct>
void write_struct(Struct* out, Struct made, const char* what) {
  need(out, what);
  if (out->size < sizeof(std::size_t)) {
    mistake(errc::invalid, std::string(what) + ": size is not set");
  }
  made.size = out->size;
  std::memcpy(out, &made, std::min(out->size, sizeof(Struct)));
}

}  // namespace holdfast::c
