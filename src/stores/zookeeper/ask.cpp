#include "stores/zookeeper/ask.hpp"

namespace holdfast::zookeeper {

namespace {

constexpr int container_rounds = 16;  // against somebody who removes as fast as we make

}  // namespace

error refusal(const char* doing, const std::string& path, code what) {
  const std::string text = std::string("zookeeper: ") + doing + " " + path + ": " + text_of(what);
  switch (what) {
    case code::no_auth:
      return {errc::denied, text + "; create, delete, read and write are needed there"};
    case code::auth_failed:
    case code::invalid_acl:
      return {errc::denied, text};
    case code::unimplemented:
      return {errc::unsupported, text};
    default:
      return {errc::unavailable, text};
  }
}

task<result<reply>> ask_one(std::shared_ptr<session> whom, question what, net::patience until,
                            std::int64_t only_in) {
  std::vector<question> batch;
  batch.push_back(std::move(what));
  replies answers = co_await asking(std::move(whom), std::move(batch), until, only_in);
  co_return std::move(answers.front());
}

task<result<void>> make_containers(std::shared_ptr<session> whom, std::string path, openness acl,
                                   net::patience until) {
  std::string next = path;
  for (int round = 0; round < container_rounds; ++round) {
    question create{make_create(next, {}, node_kind::container, acl), nullptr, {}};
    const result<reply> made = co_await ask_one(whom, std::move(create), until);
    if (!made) co_return tl::unexpected(made.error());
    const code answer = made->code;
    if (answer == code::ok || answer == code::node_exists) {
      if (next == path) co_return result<void>{};
      next = path.substr(0, path.find('/', next.size() + 1));
    } else if (answer == code::no_node && next.rfind('/') > 0) {
      next.erase(next.rfind('/'));
    } else {
      co_return tl::unexpected(refusal("create", next, answer));
    }
  }
  co_return failure(errc::unavailable, "zookeeper: " + path + " is removed as soon as it is made");
}

}  // namespace holdfast::zookeeper
