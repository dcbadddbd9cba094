-- Readers, or the holders of permits, who are in a hash: as parts/mutex, after it. `crowd`: there is nothing
-- in it that only the general way knows how to handle.
local crowd = held and held > 0 and not holds and ends > now and (waiting == 0 or dead > now)
  and silent == 0 and shut <= now and latch <= now
local holders, hold_ends -- their keys
-- Likewise for parts/write: a holder more, as it is stored, and one less; until when their keys live.
local taken, hold, gone, holders_till
