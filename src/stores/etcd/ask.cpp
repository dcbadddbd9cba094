#include "stores/etcd/ask.hpp"

namespace holdfast::etcd {

bool lease_is_gone(const grpc_status& what) {
  return what.code == status_code::not_found && what.text.find("lease") != std::string::npos;
}

error refusal(const char* doing, std::string_view key, const grpc_status& what) {
  const std::string text =
      std::string("etcd: ") + doing + " " + std::string(key) + ": " + what.text;
  switch (what.code) {
    case status_code::permission_denied:
      return {errc::denied, text + "; read and write are needed there"};
    case status_code::unauthenticated:
      return {errc::denied, text};
    case status_code::invalid_argument:
      // "user name is empty": it wants a login. "too many operations", "too large": a limit of its own.
      if (what.text.find("user") != std::string::npos) return {errc::denied, text};
      if (what.text.find("too ") != std::string::npos) return {errc::overloaded, text};
      return {errc::unavailable, text};
    case status_code::exhausted:
      return {errc::overloaded, text};
    case status_code::unimplemented:
      return {errc::unsupported, text};
    default:
      return {errc::unavailable, text};
  }
}

task<result<reply>> ask_one(std::shared_ptr<channel> whom, call& what, const char* doing,
                            std::string_view key, net::patience until) {
  std::vector<call> batch;
  batch.push_back(std::move(what));
  replies answers = co_await asking(std::move(whom), std::move(batch), until);
  result<reply>& answer = answers.front();
  if (answer && !answer->ok()) co_return tl::unexpected(refusal(doing, key, answer->status));
  co_return std::move(answer);
}

}  // namespace holdfast::etcd
