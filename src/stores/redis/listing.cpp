// See the header.
#include "stores/redis/listing.hpp"

#include "stores/redis/client/server_error.hpp"
#include "stores/redis/wire.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

constexpr std::size_t keys_at_once = 100;

}  // namespace

listing::listing(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                 spi::resource_id what, time_point deadline, spi::completion<summaries> done)
    : topology_(std::move(servers)),
      scripts_(std::move(with)),
      what_(std::move(what)),
      pattern_(state_pattern(what_.space, what_.name)),
      deadline_(deadline),
      done_(std::move(done)) {}

void listing::start(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                    spi::resource_id what, time_point deadline, spi::completion<summaries> done) {
  const std::shared_ptr<listing> made(
      new listing(std::move(servers), std::move(with), std::move(what), deadline, std::move(done)));
  made->topology_->ready(deadline, [made](const result<void>& known) {
    if (!known) return made->fail(known.error());
    made->nodes_ = made->topology_->nodes();
    made->scan("0");
  });
}

void listing::fail(error why) { done_(tl::unexpected(std::move(why))); }

void listing::scan(const std::string& cursor) {
  if (nodes_.empty()) return count();
  nodes_.back()->send(
      command{"SCAN", cursor, "MATCH", pattern_, "COUNT", "1000"}, deadline_,
      [self = shared_from_this()](const result<reply>& answer) { self->scanned(answer); });
}

void listing::scanned(const result<reply>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->is_error()) {
    return fail(to_error(*answer, "SCAN", nodes_.back()->where(), {"~holdfast:*", ""}));
  }
  if (answer->elements.size() < 2) return fail({errc::unavailable, "SCAN: a strange answer"});
  for (const reply& key : answer->elements[1].elements) {
    const auto parsed = parse_state(key.words());
    if (parsed && keys_[parsed->lane].insert(std::string(key.words())).second) ++found_;
  }
  if (found_ > names_at_most) {
    return fail(
        {errc::overloaded, "more than " + std::to_string(names_at_most) + " names: give a prefix"});
  }
  const std::string cursor(answer->elements[0].words());
  if (cursor == "0") nodes_.pop_back();
  scan(cursor == "0" ? "0" : cursor);
}

void listing::count() {
  while (!keys_.empty() && keys_.begin()->second.empty()) keys_.erase(keys_.begin());
  if (keys_.empty()) {
    std::ranges::sort(list_, {}, &spi::resource_summary::name);
    return done_(std::move(list_));
  }
  auto& [which, left] = *keys_.begin();
  std::vector<std::string> keys;
  while (!left.empty() && keys.size() < keys_at_once) {
    keys.push_back(std::move(left.extract(left.begin()).value()));
  }
  std::vector<std::string_view> words(keys.begin(), keys.end());
  const std::string mark = observed_key(which);
  words.push_back(mark);
  topology_->run(which, scripts_->list, words, {}, deadline_,
                 [self = shared_from_this(), keys](const result<reply>& answer) {
                   self->counted(keys, answer);
                 });
}

void listing::counted(const std::vector<std::string>& keys, const result<reply>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->is_error()) {
    return fail(to_error(*answer, "list", topology_->where(), {"~holdfast:*", "&holdfast:*"}));
  }
  const auto& fields = answer->elements;
  for (std::size_t i = 0; i < keys.size() && 4 * i + 4 < fields.size(); ++i) {
    const auto holders = static_cast<std::size_t>(fields[4 * i + 1].integer);
    const auto waiters = static_cast<std::size_t>(fields[4 * i + 2].integer);
    const auto shut = shut_of(fields[4 * i + 4].integer);
    if (holders + waiters == 0 && !shut) continue;
    const auto resource = resource_of(parse_state(keys[i])->tail, fields[4 * i + 3].words());
    if (!resource || resource->space != what_.space) continue;
    if (!resource->name.starts_with(what_.name)) continue;
    list_.push_back({resource->name, holders, waiters, shut});
  }
  count();
}

}  // namespace holdfast::redis
