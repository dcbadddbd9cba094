-- What differs between calls of one script text: the kind of channels, and times that tests shorten.
local sharded = false
local waiter_lease = 30000000
local tombstone_extra = 60000000
