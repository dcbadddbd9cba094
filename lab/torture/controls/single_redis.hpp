// Broken locks on one Redis server; control.cpp says what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/run_record.hpp"

namespace holdfast::torture::controls {

run_record setnx_then_expire(servers& all);
run_record del_without_owner(servers& all);
run_record timestamp_and_getset(servers& all);
run_record work_longer_than_the_lease(servers& all);
run_record renewal_after_release(servers& all);
run_record queue_that_skips(servers& all);
run_record push_dated_at_receipt(servers& all);
run_record publish_count_as_life(servers& all);

}  // namespace holdfast::torture::controls
