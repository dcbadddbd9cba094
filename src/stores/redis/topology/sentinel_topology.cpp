#include "stores/redis/topology/sentinel_topology.hpp"

#include "stores/redis/client/reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

// From a flat list of names and values.
std::string_view field(const reply& list, std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
    if (list.elements[i].words() == name) return list.elements[i + 1].words();
  }
  return {};
}

}  // namespace

command sentinel_question(std::string_view name) {
  command both{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name};
  both.then(command{"SENTINEL", "MASTER", name});
  return both;
}

sentinel_answer read_sentinel(const reply& answer) {
  sentinel_answer found;
  if (answer.elements.size() != 2) {
    found.refusal = "unexpected reply";
    return found;
  }
  const reply& address = answer.elements[0];
  const reply& facts = answer.elements[1];
  if (address.is_error() || facts.is_error()) {
    if (facts.text.find("No such master") != std::string::npos) {
      found.what = sentinel_answer::kind::no_such_name;
    }
    found.refusal = address.is_error() ? address.text : facts.text;
    return found;
  }
  if (address.elements.size() != 2) {
    found.what = sentinel_answer::kind::no_such_name;
    return found;
  }
  const auto port = parse_number<std::uint16_t>(address.elements[1].words());
  const auto epoch = parse_number<std::int64_t>(field(facts, "config-epoch"));
  if (!port || *port == 0 || !epoch || address.elements[0].words().empty()) {
    found.refusal = "unexpected reply";
    return found;
  }
  found.what = sentinel_answer::kind::found;
  found.master = {std::string(address.elements[0].words()), *port, {}};
  found.epoch = *epoch;
  return found;
}

bool switches(std::string_view payload, std::string_view name) noexcept {
  return payload.starts_with(name) && payload.size() > name.size() && payload[name.size()] == ' ';
}

namespace {

// A lack of permission.
std::optional<error> refusal_in(const reply& answer, const node& from) {
  for (const reply& each : answer.elements) {
    if (each.is_error() && classify(each) == trouble::denied) {
      return to_error(each, "SENTINEL", from.where());
    }
  }
  return std::nullopt;
}

// Sentinels have their own users, which have their own place in the URL.
error of_sentinel(error why) {
  why.detail = "sentinel: " + why.detail;
  const bool unknown_to_it = why.detail.find("AUTH") != std::string::npos;
  if (why == errc::denied && unknown_to_it) {
    why.detail += "; for sentinels: sentinel_user and sentinel_password, or sentinel_auth=same";
  }
  return why;
}

}  // namespace

// Receives one sentinel's announcements. Confirmed: some may have been missed before.
class sentinel_topology::announcement_listener final : public channel_listener {
 public:
  announcement_listener(std::weak_ptr<sentinel_topology> of, std::string name)
      : of_(std::move(of)), name_(std::move(name)) {}

  void confirmed() override { look(); }
  void message(std::string_view payload) override {
    if (switches(payload, name_)) look();
  }
  void interrupted(const error&) override {}

 private:
  void look() {
    if (const auto owner = of_.lock()) owner->look_around();
  }

  const std::weak_ptr<sentinel_topology> of_;
  const std::string name_;
};

sentinel_topology::sentinel_topology(const net::network& net, settings how)
    : moving_topology(net, std::move(how.server), channel_id::flavour::classic),
      name_(std::move(how.master)) {
  for (const server_options& each : how.sentinels) {
    sentinels_.push_back(std::make_shared<node>(net, each));
  }
}

sentinel_topology::~sentinel_topology() {
  if (!forked()) close();
}

moving_topology::verdict sentinel_topology::judge(const routed_command&, const reply& refusal) {
  if (classify(refusal) != trouble::demoted) return {};
  look_around();
  return {verdict::what::later, nullptr};
}

void sentinel_topology::look_around() {
  std::vector<std::shared_ptr<announcement_listener>> fresh;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (round_.missing > 0) {
      again_ = true;
      return;
    }
    again_ = false;
    net().reactor->cancel(timer_);
    number = round_.number + 1;
    round_ = {number, sentinels_.size(), {}, std::nullopt};
    if (listeners_.empty()) {
      const auto self = std::static_pointer_cast<sentinel_topology>(shared_from_this());
      for (std::size_t i = 0; i < sentinels_.size(); ++i) {
        listeners_.push_back(std::make_shared<announcement_listener>(self, name_));
      }
      fresh = listeners_;
    }
  }
  net::patience until(net().reactor->now() + round_limit);
  until.reach_by = until.deadline;  // a refused connection counts as an answer
  until.at_once = true;
  const command question = sentinel_question(name_);
  for (const auto& each : sentinels_) {
    each->send(question, until,
               [weak = weak_from_this(), number, from = each](const result<reply>& answer) {
                 const auto self = std::static_pointer_cast<sentinel_topology>(weak.lock());
                 if (self != nullptr) self->heard(number, *from, answer);
               });
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    auto made = sentinels_[i]->listen({channel_id::flavour::classic, "+switch-master"}, fresh[i]);
    const std::lock_guard lock(mutex_);
    if (made && !ended_) subscriptions_.push_back(*std::move(made));
  }
}

void sentinel_topology::heard(std::uint64_t number, const node& from, const result<reply>& answer) {
  std::optional<sentinel_answer> chosen;
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || number != round_.number || round_.missing == 0) return;
    auto told = answer ? refusal_in(*answer, from) : std::optional<error>(answer.error());
    if (told) {
      round_.failure = of_sentinel(*std::move(told));
    } else {
      round_.answers.push_back(read_sentinel(*answer));
    }
    chosen = choose();
    over = --round_.missing == 0;
  }
  if (chosen) adopt(*chosen);
  if (over) round_over();
}

// Called with the mutex held. The answer to use, if there is a new one.
std::optional<sentinel_answer> sentinel_topology::choose() const {
  const sentinel_answer* best = nullptr;
  std::size_t told = 0;
  for (const sentinel_answer& each : round_.answers) {
    if (each.what != sentinel_answer::kind::found) continue;
    ++told;
    if (best == nullptr || each.epoch > best->epoch) best = &each;
  }
  if (best == nullptr) return std::nullopt;
  if (master_ != nullptr && best->epoch > epoch_) return *best;
  const bool majority = round_.answers.size() > sentinels_.size() / 2;
  const bool last = round_.missing == 1;  // the one that is being counted
  if (master_ == nullptr && (majority || last)) return *best;
  if (best->epoch < epoch_ && told == sentinels_.size()) return *best;
  return std::nullopt;
}

void sentinel_topology::adopt(const sentinel_answer& found) {
  std::shared_ptr<node> left;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    epoch_ = found.epoch;
    if (master_ != nullptr && master_->options().where == found.master) return;
    left = std::exchange(master_, make_node(found.master));
    reached_ = false;
  }
  // Two may run at the same time: the latest knowledge must win.
  for (bool current = false; !current;) {
    std::shared_ptr<node> mine;
    {
      const std::lock_guard lock(mutex_);
      mine = master_;
    }
    settle(homes(partitions(), mine));
    const std::lock_guard lock(mutex_);
    current = mine == master_;
  }
  if (left != nullptr) left->close();
}

void sentinel_topology::round_over() {
  bool once_more = false;
  bool helpless = false;
  error why;
  {
    const std::lock_guard lock(mutex_);
    once_more = std::exchange(again_, false);
    helpless = master_ == nullptr;
    if (helpless) why = no_master();
  }
  if (helpless) {
    set_trouble(why.detail);
    refuse_stalled(why);
  }
  if (once_more) return look_around();
  if (!in_demand()) return;
  const std::lock_guard lock(mutex_);
  if (ended_ || reached_) return;
  timer_ = net().reactor->at(net().reactor->now() + rest_, [weak = weak_from_this()] {
    const auto self = std::static_pointer_cast<sentinel_topology>(weak.lock());
    if (self != nullptr) self->look_around();
  });
  rest_ = std::min(rest_ * 2, longest_rest);
}

// Called with the mutex held.
error sentinel_topology::no_master() const {
  const auto no_name = static_cast<std::size_t>(std::ranges::count(
      round_.answers, sentinel_answer::kind::no_such_name, &sentinel_answer::what));
  if (no_name == sentinels_.size()) {
    return {errc::denied, "no sentinel knows a master named '" + name_ + "'"};
  }
  if (no_name == 0 && round_.failure) return *round_.failure;
  std::string text = "no sentinel knows the master '" + name_ + "' now";
  if (round_.failure) text += "; " + round_.failure->detail;
  return {errc::unavailable, std::move(text)};
}

void sentinel_topology::node_opened(const std::string& where) {
  const std::lock_guard lock(mutex_);
  if (master_ == nullptr || master_->options().where.text() != where) return;
  reached_ = true;
  rest_ = shortest_rest;
}

void sentinel_topology::node_ended(const std::string& where) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || master_ == nullptr || master_->options().where.text() != where) return;
    reached_ = false;
  }
  look_around();
}

void sentinel_topology::end() noexcept {
  std::vector<std::unique_ptr<spi::subscription>> subscriptions;
  std::shared_ptr<node> master;
  spi::runtime::timer_id timer = 0;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    subscriptions.swap(subscriptions_);
    master = std::move(master_);
    timer = timer_;
  }
  net().reactor->cancel(timer);
  for (const auto& each : sentinels_) each->close();
  if (master != nullptr) master->close();
}

}  // namespace holdfast::redis
