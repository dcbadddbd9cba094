// Several leases as one: valid while all are, lost with the first.
#include "core/hold.hpp"
#include "primitives/operation.hpp"

#include <holdfast/multi_lock.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

struct multi_lease::inside {
  struct pass_on {
    std::stop_source all;
    void operator()() noexcept { all.request_stop(); }
  };

  explicit inside(std::vector<lease> given) : leases(std::move(given)) {
    for (const lease& each : leases) {
      listeners.push_back(
          std::make_unique<std::stop_callback<pass_on>>(each.lost(), pass_on{lost}));
    }
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() {
    listeners.clear();
    while (!leases.empty()) leases.pop_back();
  }

  std::vector<lease> leases;
  std::stop_source lost;
  std::vector<std::unique_ptr<std::stop_callback<pass_on>>> listeners;
};

multi_lease::multi_lease() noexcept = default;
multi_lease::multi_lease(std::vector<lease> leases)
    : inside_(std::make_unique<inside>(std::move(leases))) {}
multi_lease::multi_lease(multi_lease&&) noexcept = default;
multi_lease& multi_lease::operator=(multi_lease&&) noexcept = default;
multi_lease::~multi_lease() = default;

result<void> multi_lease::release() {
  const auto last = std::exchange(inside_, nullptr);
  if (!last) return failure(errc::not_held, "this lease holds nothing");
  last->listeners.clear();
  result<void> first;
  for (auto each = last->leases.rbegin(); each != last->leases.rend(); ++each) {
    auto answer = each->release();
    if (first && !answer) first = std::move(answer);
  }
  return first;
}

namespace {

// Gives the leases back one after the other, the last first; each completion begins the next.
struct giving_back {
  std::vector<lease> left;
  result<void> first;
  spi::completion<void> done;

  static void step(std::shared_ptr<giving_back> all) {
    if (all->left.empty()) return std::exchange(all->done, nullptr)(std::move(all->first));
    const auto hold = all->left.back().take_inside();
    all->left.pop_back();
    hold->release([all](result<void> answer) {
      if (all->first && !answer) all->first = std::move(answer);
      step(all);
    });
  }
};

}  // namespace

awaitable<void> multi_lease::async_release() {
  auto last = std::exchange(inside_, nullptr);
  if (!last || last->leases.empty()) {
    return detail::make_refusal<void>({errc::not_held, "this lease holds nothing"});
  }
  last->listeners.clear();
  auto owner = last->leases.front().inside()->owner();
  auto all = std::make_shared<giving_back>();
  all->left = std::move(last->leases);
  return detail::make_awaitable<void>(std::move(owner),
                                      [all = std::move(all)](spi::completion<void> done) {
                                        all->done = std::move(done);
                                        giving_back::step(all);
                                      });
}

bool multi_lease::valid() const noexcept {
  return inside_ != nullptr && std::all_of(inside_->leases.begin(), inside_->leases.end(),
                                           [](const lease& each) { return each.valid(); });
}

time_point multi_lease::valid_until() const noexcept {
  if (inside_ == nullptr) return time_point::min();
  time_point earliest = time_point::max();
  for (const lease& each : inside_->leases) earliest = std::min(earliest, each.valid_until());
  return earliest;
}

duration multi_lease::valid_for() const noexcept {
  const time_point end = valid_until();
  if (end == time_point::max()) return forever;
  const time_point now = clock::now();
  return end <= now ? duration{0} : end - now;
}

std::stop_token multi_lease::lost() const {
  if (inside_ != nullptr) return inside_->lost.get_token();
  std::stop_source none;
  none.request_stop();
  return none.get_token();
}

const std::vector<lease>& multi_lease::leases() const noexcept {
  static const std::vector<lease> none;
  return inside_ == nullptr ? none : inside_->leases;
}

}  // namespace holdfast
