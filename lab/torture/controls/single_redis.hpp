// Broken locks on one Redis server; control.cpp says what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/story.hpp"

namespace holdfast::torture::controls {

story setnx_then_expire(servers& all);
story del_without_owner(servers& all);
story timestamp_and_getset(servers& all);
story work_longer_than_the_lease(servers& all);
story renewal_after_release(servers& all);
story queue_that_skips(servers& all);
story push_dated_at_receipt(servers& all);
story publish_count_as_life(servers& all);

}  // namespace holdfast::torture::controls
