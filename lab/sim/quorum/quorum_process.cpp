#include "sim/quorum/quorum_process.hpp"

#include "sim/quorum/quorum_world.hpp"

#include <string>
#include <utility>

namespace holdfast::sim {

quorum_process::quorum_process(quorum_world& in, std::int32_t index, random_source random)
    : node(in.plan().client_clocks[static_cast<std::size_t>(index)]),
      world_(in),
      index_(index),
      random_(random.branch(0)),
      runtime_(std::make_shared<sim_runtime>(in.loop(), *this, random.branch(1), in.plan().late)),
      rounds_left_(in.plan().rounds) {
  const quorum_plan& plan = in.plan();
  std::vector<holdfast::quorum::member> members;
  for (std::uint32_t i = 0; i < plan.members; ++i) {
    quorum_member& at = in.member(i);
    links_.push_back(std::make_unique<sim::link>(in.loop(), at.log, *this, at.server, index,
                                                 random.branch(100 + i), plan.normal));
    stores_.push_back(std::make_shared<sim_store>(*runtime_, *links_.back(), at.log, at.book, index,
                                                  plan.store, at));
    at.server.connect(links_.back().get());
    stores_.back()->met(at.server.time());
    members.push_back({"member" + std::to_string(i), stores_.back()});
  }
  holdfast::quorum::settings settings;
  settings.limit.shortest_answer = plan.answer;
  settings.limit.longest_answer = plan.answer;
  store_ = std::make_shared<holdfast::quorum::quorum_store>(runtime_, std::move(members), settings);
  core::engine_settings tuned;
  tuned.payload = "client";
  tuned.limit = plan.limit;
  engine_ = std::make_shared<core::engine>(runtime_, store_, tuned);
}

quorum_process::~quorum_process() = default;

record quorum_process::about(what kind) const {
  record line;
  line.kind = kind;
  line.process = index_;
  line.resource = 0;
  line.acquisition = acquisition_;
  line.mode = mode_;
  if (hold_) {
    line.hold = hold_number_;
    line.fence = hold_->fence().value();
  }
  return line;
}

void quorum_process::after(duration pause, void (quorum_process::*step)()) {
  world_.loop().at(world_.loop().now() + pause, *this, event_class::timer, [this, step] {
    if (!dead_) (this->*step)();
  });
}

void quorum_process::start() {
  after(random_.between(duration{0}, world_.plan().longest_think), &quorum_process::next_round);
}

void quorum_process::next_round() {
  if (rounds_left_ == 0) {
    finished_ = true;
    return;
  }
  --rounds_left_;
  const quorum_plan& plan = world_.plan();
  core::request request;
  request.resource.name = "r0";
  request.lock.ttl = plan.ttl;
  request.lock.retry = plan.retry;
  if (plan.kind == resource_kind::shared && random_.chance(600)) request.mode = spi::mode::shared;
  if (random_.chance(plan.tries)) {
    request.wait = duration{0};
  } else if (!random_.chance(plan.forever)) {
    request.wait = random_.between(duration{1}, plan.longest_wait);
  }
  mode_ = request.mode;
  acquisition_ = world_.next_number();
  world_.add(about(what::acquire_invoked));
  engine_->acquire(std::move(request), [this](result<std::shared_ptr<core::hold>> answer) {
    if (!dead_) acquired(std::move(answer));
  });
}

void quorum_process::acquired(result<std::shared_ptr<core::hold>> answer) {
  const quorum_plan& plan = world_.plan();
  if (!answer) {
    record line = about(what::acquire_failed);
    line.number = static_cast<int>(answer.error().code);
    world_.add(line);
    return after(random_.between(duration{0}, plan.longest_think), &quorum_process::next_round);
  }
  hold_ = std::move(*answer);
  hold_number_ = world_.next_number();
  seen_valid_ = false;
  looked_at_ = false;
  world_.granted();
  world_.add(about(what::acquire_granted));
  after(random_.between(duration{0}, plan.longest_hold), &quorum_process::give_back);
}

void quorum_process::give_back() {
  world_.add(about(what::release_invoked));
  const auto hold = std::move(hold_);
  hold_.reset();
  hold->release();
  after(random_.between(duration{0}, world_.plan().longest_think), &quorum_process::next_round);
}

void quorum_process::look_for_end() {
  if (!hold_ || dead_ || hold_->valid() || (looked_at_ && !seen_valid_)) return;
  looked_at_ = true;
  seen_valid_ = false;
  world_.add(about(what::validity_ended));
}

void quorum_process::look_for_beginning() {
  if (!hold_ || dead_ || seen_valid_ || !hold_->valid()) return;
  looked_at_ = true;
  seen_valid_ = true;
  world_.add(about(what::validity_began));
}

void quorum_process::tear_down() {
  dead_ = true;
  hold_.reset();
  engine_->close(duration{0}, [](const auto&) {});
  store_->close();
}

}  // namespace holdfast::sim
