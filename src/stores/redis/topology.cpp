#include "stores/redis/topology.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::redis {

namespace {

// The script's answer and the count of replicas, in whichever order they arrive.
struct confirmation {
  std::mutex mutex;
  std::optional<result<reply>> answer;  // guarded by mutex
  std::optional<result<reply>> count;   // guarded by mutex
  spi::completion<reply> done;
  std::string where;
  std::uint32_t replicas = 0;

  void take(std::optional<result<reply>>& place, result<reply> what) {
    {
      const std::lock_guard lock(mutex);
      place = std::move(what);
      if (!answer || !count) return;
    }
    finish();
  }

  void finish() {
    if (!*answer || (*answer)->is_error()) return done(std::move(*answer));
    if (!*count) return done(tl::unexpected(count->error()));
    // SET's reply and WAIT's.
    const auto& both = (*count)->elements;
    const bool counted = both.size() == 2 && both[1].is(reply::type::integer);
    if (counted && !both[0].is_error() && both[1].integer >= replicas) {
      return done(std::move(*answer));
    }
    const std::string found = counted ? std::to_string(both[1].integer) : "none";
    done(failure(errc::unavailable, where + ": confirmed by " + found + " of " +
                                        std::to_string(replicas) +
                                        " replicas (wait_replicas) in time"));
  }
};

}  // namespace

confirmer::confirmer(const net::network& net, const server_options& options,
                     const connection::events& tell)
    : reactor_(net.reactor),
      where_("redis " + options.where.text()),
      replicas_(options.wait_replicas) {
  for (auto& each : connections_) each = connection::make(net, options, tell);
}

void confirmer::run(partition which, pending_ptr call) {
  if (call->runs->purpose() == script::gives::nothing) {
    return connections_[which % connection_count]->send(std::move(call));
  }
  confirm(which, std::move(call));
}

// The connection must not repeat a script that the server does not know: the write and the
// WAIT would come before it.
void confirmer::confirm(partition which, std::shared_ptr<pending> call) {
  const std::shared_ptr<connection>& way = connections_[which % connection_count];
  const net::patience until = call->until;
  const auto both = std::make_shared<confirmation>();
  both->done = [weak = weak_from_this(), which, call](result<reply> answer) {
    const auto self = weak.lock();
    if (!answer || !is_unknown_script(*answer) || call->reloads == 0 || self == nullptr) {
      return call->answer(std::move(answer));
    }
    --call->reloads;
    self->confirm(which, call);
  };
  both->where = where_;
  both->replicas = replicas_;
  // Answered before the deadline, or the connection would be given up and its answers with it.
  const duration left = std::min((until.deadline - reactor_->now()) / 2, longest_wait);
  const auto wait = std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::milliseconds>(left).count());
  const std::string mark = partition_prefix(which) + "w";
  command proof{"SET", mark, "", "PX", "1000"};
  proof.then(command{"WAIT", std::to_string(replicas_), std::to_string(wait)});
  pending_ptr once = make_pending(
      call->what, until,
      [both](result<reply> answer) { both->take(both->answer, std::move(answer)); }, call->asking);
  once->runs = call->runs;
  way->send(std::move(once));
  way->send(std::move(proof), until,
            [both](result<reply> answer) { both->take(both->count, std::move(answer)); });
}

void confirmer::close() noexcept {
  for (const auto& each : connections_) each->close();
}

node::node(const net::network& net, const server_options& options, const connection::events& tell)
    : commands_(connection::make(net, options, tell)),
      channels_(subscriber::make(net, options)),
      confirmer_(options.wait_replicas > 0 ? std::make_shared<confirmer>(net, options, tell)
                                           : nullptr) {}

node::~node() = default;

void node::run(partition which, pending_ptr call) {
  if (confirmer_ != nullptr) return confirmer_->run(which, std::move(call));
  commands_->send(std::move(call));
}

result<std::unique_ptr<spi::subscription>> node::listen(const channel_id& channel,
                                                        std::weak_ptr<channel_listener> listener) {
  return channels_->subscribe(channel, std::move(listener));
}

void node::close() noexcept {
  channels_->close();
  if (confirmer_ != nullptr) confirmer_->close();
  commands_->close();
}

}  // namespace holdfast::redis
