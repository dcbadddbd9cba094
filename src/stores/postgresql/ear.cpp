// See the header.
#include "stores/postgresql/ear.hpp"

#include <utility>

namespace holdfast::postgresql {

namespace {

std::string token(spi::runtime& runtime) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {runtime.random(), runtime.random()}) {
    for (unsigned shift = 0; shift < 64; shift += 4) text += digits[half >> shift & 15U];
  }
  return text;
}

}  // namespace

ear::ear(net::network net, std::shared_ptr<sql::bells> bells,
         std::shared_ptr<sql::audience> audience, std::string process,
         std::function<void(const spi::claim_id&)> taken)
    : net_(std::move(net)),
      bells_(std::move(bells)),
      audience_(std::move(audience)),
      process_(std::move(process)),
      taken_(std::move(taken)) {}

std::shared_ptr<ear> ear::make(net::network net, std::shared_ptr<const server_options> options,
                               std::shared_ptr<sql::bells> bells,
                               std::shared_ptr<sql::audience> audience,
                               std::function<void(const spi::claim_id&)> taken) {
  std::string process = token(*net.reactor);
  std::shared_ptr<ear> made(
      new ear(net, std::move(bells), std::move(audience), std::move(process), std::move(taken)));
  const std::weak_ptr<ear> weak = made;
  connection::events tell;
  tell.opened = [weak] {
    if (const auto self = weak.lock()) self->opened();
  };
  tell.notified = [weak](std::string_view message) {
    if (const auto self = weak.lock()) self->heard(message);
  };
  made->connection_ =
      connection::make(std::move(net), std::move(options),
                       {.duty = duty::ear, .channel = "hf_" + made->process_}, std::move(tell));
  return made;
}

void ear::opened() {
  answer({});
  bells_->ring_all();
  audience_->tell_all_latches();
}

void ear::heard(std::string_view message) {
  const auto push = sql::to_push(message);
  if (!push) return;
  switch (push->what) {
    case sql::push::kind::event:
      return audience_->tell(push->key, push->event);
    case sql::push::kind::latch:
      return audience_->tell_latch(push->key);
    default:
      bells_->ring(*push);
      if (push->what == sql::push::kind::gone && taken_) taken_(push->claim);
  }
}

void ear::when_open(time_point deadline, spi::completion<void> done) {
  start();
  {
    const std::lock_guard lock(mutex_);
    awaited_.push_back(std::move(done));
  }
  if (connection_->is_open()) return answer({});
  net_.reactor->at(deadline, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->answer(tl::unexpected(self->connection_->last_failure().value_or(
        error{errc::unavailable, "postgresql: not connected in time"})));
  });
}

// Everybody at once: a deadline that passes too early for one of them costs it a repetition.
void ear::answer(const result<void>& outcome) {
  std::vector<spi::completion<void>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(awaited_);
  }
  for (auto& each : all) each(outcome);
}

void ear::close() noexcept {
  connection_->close();
  answer(failure(errc::cancelled, "closed"));
}

}  // namespace holdfast::postgresql
