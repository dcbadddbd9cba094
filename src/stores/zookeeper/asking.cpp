// Sending requests to a session from within a flow, and the writes that prove it.
#include "core/hex.hpp"
#include "stores/zookeeper/session.hpp"

#include <string_view>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr int container_rounds = 16;  // against a peer that removes as fast as we create

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

task<result<multi_outcome>> ask_multi(std::shared_ptr<session> whom, std::vector<request> parts,
                                      net::patience until, std::int64_t only_in) {
  question step{make_multi(parts)};
  const reply answer = co_await value_of(ask_one(std::move(whom), std::move(step), until, only_in));
  multi_outcome outcome;
  outcome.failed = answer.code;
  if (answer.code != code::ok) co_return outcome;
  outcome.failed = code::connection_loss;
  co_return read_multi(answer.body).value_or(std::move(outcome));
}

result<std::vector<std::string>> children_in(const result<reply>& answer, const std::string& path) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code == code::no_node) return std::vector<std::string>{};
  if (answer->code != code::ok) return tl::unexpected(refusal("list", path, answer->code));
  return read_children(answer->body);
}

task<result<void>> make_containers(std::shared_ptr<session> whom, std::string path, openness acl,
                                   net::patience until) {
  std::string next = path;
  for (int round = 0; round < container_rounds; ++round) {
    question create{make_create(next, {}, node_kind::container, acl)};
    const reply made = co_await value_of(ask_one(whom, std::move(create), until));
    const code answer = made.code;
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

// Static, and keeps the session alive: a flow may outlive its caller.
flow session::prove(std::shared_ptr<session> self, std::int64_t id, bool made,
                    time_point deadline) {
  const std::string folder = self->options_->root + "/_holdfast";
  const std::string node = folder + "/" + core::hex_of(static_cast<std::uint64_t>(id));
  const openness acl = self->options_->acl;
  question write{made ? make_set_data(node, {}) : make_create(node, {}, node_kind::ephemeral, acl),
                 nullptr,
                 {}};
  result<reply> answer = co_await ask_one(self, std::move(write), deadline, id);
  bool exists = made;
  if (answer && !made && answer->code == code::no_node) {
    const result<void> above = co_await make_containers(self, folder, acl, deadline);
    if (above) {
      question again{make_create(node, {}, node_kind::ephemeral, acl), nullptr, {}};
      answer = co_await ask_one(self, std::move(again), deadline, id);
    }
  }
  if (answer) exists = answer->code == code::ok || answer->code == code::node_exists;
  const std::scoped_lock lock(self->mutex_);
  self->beating_ = false;
  if (self->id_ == id) self->beating_node_ = exists ? id : 0;
}

}  // namespace holdfast::zookeeper
