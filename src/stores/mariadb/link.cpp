// Questions and answers. How it begins: link_connect.cpp.
#include "stores/mariadb/link.hpp"

#include <utility>

namespace holdfast::mariadb {

link::link(net::network net, std::shared_ptr<const server_options> options,
           std::weak_ptr<sql::link_user> whose, manner how, std::size_t turn)
    : sql::link(std::move(net), options->text(), std::move(whose)),
      options_(std::move(options)),
      how_(std::move(how)),
      host_(options_->hosts[turn % options_->hosts.size()]) {}

link::~link() {
  if (!guard_.forked()) {
    close();
    return;
  }
  if (talk_ != nullptr) talk_.release()->abandon();
}

bool link::send(const call& what) {
  const std::lock_guard lock(mutex_);
  if (phase_ != phase::open || asking_) return false;
  asking_ = true;
  asked_ = what;
  tries_ = 1;
  on_fast_path_ = !what.fast_path.empty();
  ask();
  if (!talk_->finished()) {
    await();
    return true;
  }
  // It ended within the call, which must not be told from here.
  net_.reactor->post([weak = std::weak_ptr(own())] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    harvest got;
    {
      const std::lock_guard inner(self->mutex_);
      if (self->phase_ == phase::open && self->asking_) self->proceed(got);
    }
    self->deliver(got);
  });
  return true;
}

void link::ask() {
  talk_->ask(on_fast_path_ ? asked_.fast_path
                           : text_of(asked_.which, asked_.with, options_->prefix, home_));
}

// As libmariadb wants it; where it wants nothing, to see the server hang up.
void link::await() {
  const int flags = talk_->finished() ? MYSQL_WAIT_READ : talk_->waits_for();
  const bool writable = (flags & MYSQL_WAIT_WRITE) != 0;
  const bool readable = (flags & (MYSQL_WAIT_READ | MYSQL_WAIT_EXCEPT)) != 0 || !writable;
  if (watched() && readable == readable_ && writable == writable_) return;
  readable_ = readable;
  writable_ = writable;
  watch_socket(talk_->socket(), readable, writable);
}

void link::ready(spi::readiness how) {
  harvest got;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == phase::over || phase_ == phase::resolving) return;
    if (talk_->finished()) {
      // Nothing was asked, or its answer is being told: a server that says something now says goodbye.
      if (phase_ == phase::open && !asking_) {
        got.end = error{errc::unavailable, where_ + ": the server closed the connection"};
      }
    } else {
      // libmariadb may close the socket and open another (the next address): it is watched again, and
      // never while libmariadb may close it.
      if (phase_ == phase::connecting) unwatch_within();
      int flags = how.readable || how.hung_up ? MYSQL_WAIT_READ : 0;
      if (how.writable || how.hung_up) flags |= MYSQL_WAIT_WRITE;
      talk_->go_on(flags & (talk_->waits_for() | MYSQL_WAIT_READ));
      proceed(got);
    }
  }
  deliver(got);
}

void link::proceed(harvest& into) {
  while (talk_->finished() && !into.end && !into.opened && into.answers.empty()) finish(into);
  if (!into.end) await();
}

void link::finish(harvest& into) {
  if (phase_ == phase::open) return finish_question(into);
  if (phase_ == phase::connecting) return finish_connecting(into);
  finish_phase(into);
}

void link::finish_question(harvest& into) {
  if (talk_->code() == 0 && on_fast_path_) {
    on_fast_path_ = false;
    if (talk_->changed() == 0) return ask();
    into.answers.emplace_back(sql::rows{std::to_string(talk_->number())});
  } else if (talk_->code() == 0) {
    into.answers.emplace_back(std::move(talk_->rows()));
  } else if (asked_.which == statement::listen && talk_->code() == er_query_interrupted) {
    into.answers.emplace_back(sql::rows{});  // that is how a listener is woken
  } else {
    server_error failed = to_error(talk_->code(), talk_->message(), where_, name_of(asked_.which));
    if (failed.retry && tries_ < try_limit) {
      ++tries_;
      return ask();
    }
    into.answers.emplace_back(tl::unexpected(failed.what));
    if (failed.ends_link) into.end = std::move(failed.what);
  }
  asking_ = false;
}

std::int64_t link::home() {
  const std::lock_guard lock(mutex_);
  return home_;
}

std::string link::place() { return host_.host + ":" + std::to_string(host_.port); }

}  // namespace holdfast::mariadb
