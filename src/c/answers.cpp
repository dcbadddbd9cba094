#include "c/answers.hpp"

#include "holdfast_version.hpp"

namespace holdfast::c {

namespace {

// The errors of C++, by number; the C interface has a few more.
static_assert(static_cast<int>(errc::busy) == HF_BUSY);
static_assert(static_cast<int>(errc::would_deadlock) == HF_WOULD_DEADLOCK);
static_assert(static_cast<int>(errc::invalid) == HF_INVALID);

// As much as fits, without half a character.
std::size_t fitting(std::string_view text, std::size_t room) {
  if (text.size() < room) return text.size();
  std::size_t length = room - 1;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  return length;
}

}  // namespace

hf_status report(hf_error* error, hf_status code, std::string_view message, bool unsent) {
  if (error == nullptr) return code;
  if (error->size < offsetof(hf_error, message)) return code;
  error->code = code;
  error->unsent = unsent ? 1 : 0;
  const std::size_t room =
      std::min(error->size - offsetof(hf_error, message), sizeof error->message);
  if (room == 0) return code;
  const std::size_t length = fitting(message, room);
  if (length > 0) std::memcpy(error->message, message.data(), length);  // an empty view may be null
  error->message[length] = '\0';
  return code;
}

hf_status report(hf_error* error, const holdfast::error& cause) {
  const auto code = static_cast<hf_status>(cause.code);
  return error == nullptr ? code : report(error, code, cause.message(), cause.unsent);
}

hf_status report_exception(hf_error* error) noexcept {
  try {
    throw;
  } catch (const lock_error& thrown) {
    return report(error, thrown.cause());
  } catch (const std::bad_alloc&) {
    return report(error, HF_OVERLOADED, "overloaded (no memory is left)");
  } catch (const std::exception& thrown) {
    return report(error, HF_INTERNAL, thrown.what());
  } catch (...) {
    return report(error, HF_INTERNAL, "an unknown exception");
  }
}

void mistake(errc code, const std::string& what) { throw lock_error(error(code, what)); }

std::string_view text_of(const char* data, std::size_t length) {
  if (data == nullptr) return {};
  return length == HF_Z ? std::string_view(data) : std::string_view(data, length);
}

extern "C" {

const char* hf_version(void) { return HOLDFAST_VERSION; }

const char* hf_describe(hf_status status) {
  switch (status) {
    case HF_OK:
      return "ok";
    case HF_INTERNAL:
      return "internal error";
    case HF_PENDING:
      return "no answer yet";
    default:
      if (status < HF_OK || status > HF_PENDING) return "unknown status";
      return ::holdfast::describe(static_cast<holdfast::errc>(status)).data();
  }
}
}

}  // namespace holdfast::c
