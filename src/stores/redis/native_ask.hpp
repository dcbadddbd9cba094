// How the native store runs a script of one resource: the template that its two .cpp files share.
#pragma once

#include "stores/redis/client/server_error.hpp"
#include "stores/redis/native_store.hpp"

#include <array>
#include <utility>

namespace holdfast::redis {

template <class Finish>
void native_store::ask_for(const place& where, const script& what,
                           std::span<const std::string_view> arguments, const char* verb,
                           const net::patience& until, Finish finish) {
  const std::array<std::string_view, 2> keys{where.state, observed_key(where.lane)};
  const time_point sent = runtime_->now();
  topology_->run(where.lane, what, keys, arguments, until,
                 [self = shared_from_this(), verb, sent, at = where.lane,
                  finish = std::move(finish)](result<reply> answer) mutable {
                   if (!answer) return finish(tl::unexpected(std::move(answer.error())));
                   if (answer->is_error()) {
                     return finish(tl::unexpected(self->refused(*answer, verb, at)));
                   }
                   const auto found = answer_of(*answer);
                   if (found && found->dated()) {
                     self->times_.learn(sent, self->runtime_->now(), found->at);
                   }
                   finish(found);
                 });
}

template <class T, class Read>
void native_store::ask(const place& where, const script& what,
                       std::span<const std::string_view> arguments, const char* verb,
                       const net::patience& until, spi::completion<T> done, Read read) {
  ask_for(
      where, what, arguments, verb, until,
      [done = std::move(done), read = std::move(read)](const result<script_answer>& found) mutable {
        if (!found) return done(tl::unexpected(found.error()));
        done(read(*found));
      });
}

}  // namespace holdfast::redis
