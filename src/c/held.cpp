#include "c/held.hpp"

namespace holdfast::c {

bool held::enter() {
  const std::lock_guard lock(mutex_);
  if (entries_ == 0) return false;
  ++entries_;
  return true;
}

std::optional<held::hold> held::leave() {
  std::optional<hold> last;
  {
    const std::lock_guard lock(mutex_);
    if (entries_ == 0 || --entries_ > 0) return std::nullopt;
    last.emplace(std::exchange(hold_, hold{}));
  }
  if (among_) among_->end(key_, *this);
  return last;
}

bool held::valid() {
  return with([](const hold& taken) {
    return std::visit([](const auto& each) { return each.valid(); }, taken);
  });
}

const lease* held::part(const hold& of, std::size_t index) {
  if (const auto* one = std::get_if<lease>(&of)) return index == 0 && *one ? one : nullptr;
  const auto& several = std::get<multi_lease>(of);
  if (!several || index >= several.leases().size()) return nullptr;
  return &several.leases()[index];
}

std::size_t held::count(const hold& of) {
  if (const auto* one = std::get_if<lease>(&of)) return *one ? 1 : 0;
  const auto& several = std::get<multi_lease>(of);
  return several ? several.leases().size() : 0;
}

hf_text held::keep(std::string text) {
  for (const std::string& each : kept_) {
    if (each == text) return to_text(each);
  }
  return to_text(kept_.emplace_back(std::move(text)));
}

int held::lost_fd() {
  const std::lock_guard lock(mutex_);
  if (count(hold_) == 0) released_before();
  if (const auto* one = std::get_if<lease>(&hold_)) return one->lost_fd().value();
  if (!any_lost_) {
    any_lost_ = std::make_shared<const signal_fd>();
    on_lost_.emplace(std::get<multi_lease>(hold_).lost(), notify{any_lost_});
  }
  return any_lost_->get();
}

result<std::shared_ptr<held>> reentries::enter(const entry_key& key) {
  std::shared_ptr<held> present;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (found != held_.end()) present = found->second.lock();
  }
  if (!present || !present->enter()) return nullptr;
  if (present->valid()) return present;
  static_cast<void>(present->leave());
  return failure(errc::lost, "the lease ended; release every entry first");
}

void reentries::begin(const entry_key& key, const std::shared_ptr<held>& taken) {
  const std::lock_guard lock(mutex_);
  held_[key] = taken;
}

void reentries::end(const entry_key& key, const held& released) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(key);
  if (found != held_.end() && found->second.lock().get() == &released) held_.erase(found);
}

}  // namespace holdfast::c
