-- Counts hits of all algorithms, by the clock of the server. Each hit has a key and six arguments: algorithm
-- (0 fixed window, 1 sliding window, 2 token bucket), addend, limit, window in microseconds, burst, and time
-- to live of a fixed window in milliseconds. The last argument is the mode: 0 decides about each hit by
-- itself, 1 counts nothing within its limit if any hit is refused. It returns three numbers for each hit: for
-- a fixed window the count; else 1 if it is admitted or 0, the hits that fit then, and the microseconds until
-- the reset. Limits and counts are exact up to 2^53, the limit of Lua numbers.
--
-- A sliding window is stored as its number, its count and the earlier one; a token bucket as the time at
-- which it is full, in microseconds since 2023-11-14. Each hit delays it by a time that is rounded up to 1/64,
-- which the numbers of Lua hold exactly until May 2028; after that they hold 1/32 until 2032, and 1/16 until
-- 2041. A bucket that is more than empty, because its limit or its burst was changed, is cut to empty when it
-- is read.
local ceil, floor, max, min, call = math.ceil, math.floor, math.max, math.min, redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- decide decides about hits that are not of a fixed window, and counts what it admits if counts is true. It
-- returns what the script returns. The arguments of the hit begin after at.
local function decide(key, at, addend, counts)
  local text, limit, length = call('GET', key), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  if ARGV[at + 1] == '1' then -- a sliding window
    local window, current, earlier = floor(now / length), 0, 0
    if text then
      local w, c, e = string.match(text, '^(%d+):(%d+):(%d+)$')
      w = tonumber(w)
      if not w then text = nil -- not written by this script
      elseif w >= window then window, current, earlier = w, tonumber(c), tonumber(e)
      elseif w == window - 1 then earlier = tonumber(c) end
    end
    local elapsed = max(now - window * length, 0)
    local covered = ceil(earlier * (length - elapsed) / length)
    local fits = max(limit - current - covered, 0)
    if addend > fits then
      if addend > limit then return 0, fits, length end
      local hits, room, wait = earlier, limit - addend - current, -elapsed
      if room < 0 then hits, room, wait = current, limit - addend, length - elapsed end
      if hits > room then wait = wait + length - floor(room * length / hits) end
      return 0, fits, ceil(wait)
    end
    current = max(current + addend, 0)
    if counts and addend ~= 0 and (current > 0 or text) then
      local life = max(ceil(((window + 2) * length - now) / 1000), 1)
      call('SET', key, string.format('%.0f:%.0f:%.0f', window, current, earlier), 'PX', string.format('%.0f', life))
    end
    return 1, max(limit - current - covered, 0), ceil(length - elapsed)
  end

  -- A token bucket.
  local function delay(hits) return ceil(hits * length / limit * 64) / 64 end
  local since, burst = now - 1700000000000000, tonumber(ARGV[at + 5])
  local full, capacity = max(tonumber(text or '0') or 0, since), delay(burst)
  local admitted, reset, changed = 1, nil, full > since + capacity
  if changed then full = since + capacity end -- the limit or the burst was changed
  if addend > burst then
    admitted, reset = 0, length
  elseif addend > 0 and full - since + delay(addend) > capacity then
    admitted, reset = 0, full - since + delay(addend) - capacity
  elseif counts and addend ~= 0 then
    full, changed = addend > 0 and full + delay(addend) or max(full - delay(-addend), since), true
  end
  if changed then
    local life = min(ceil((full - since) / 1000), 9e15)
    if life > 0 then
      call('SET', key, string.format('%.6f', full), 'PX', string.format('%.0f', life))
    elseif text then
      call('DEL', key)
    end
  end
  local free, room = capacity - (full - since), 0
  if free > 0 then
    room = min(floor(free * limit / length), burst)
    while room > 0 and delay(room) > free do room = room - 1 end
  end
  return admitted, room, ceil(reset or full - since)
end

if #KEYS == 1 and ARGV[1] ~= '0' then
  return {decide(KEYS[1], 0, tonumber(ARGV[2]), true)}
end

-- In mode 1: whether any hit is refused, the verdicts by the index of the hit, the fixed windows that would be
-- over their limits, and the last hit of each key. The hits of a token bucket are counted together with its last
-- one, as they were looked at: the delay of each by itself would be rounded up.
local any, looks, over, sums, last = false, {}, {}, {}, {}
if ARGV[#ARGV] == '1' then
  for i, key in ipairs(KEYS) do
    local at = 6 * i - 6
    local addend = tonumber(ARGV[at + 2])
    if ARGV[at + 1] == '0' then
      sums[key] = max((sums[key] or tonumber(call('GET', key) or '0')) + addend, 0)
      if sums[key] > tonumber(ARGV[at + 3]) then over[key], any = true, true end
    else
      sums[key] = (sums[key] or 0) + addend
      looks[i], last[key] = {decide(key, at, sums[key], false)}, i
      if looks[i][1] == 0 then any = true end
    end
  end
end

-- fixed counts hits of a fixed window, and returns what the script returns.
local function fixed(key, addend, ttl)
  local text = call('GET', key)
  local count = tonumber(text or '0')
  if addend > 0 or (addend < 0 and text) then
    count = call('INCRBY', key, string.format('%.0f', addend))
    if count < 0 then
      call('SET', key, '0', 'KEEPTTL')
      count = 0
    end
    if not text then call('PEXPIRE', key, ttl) end
  end
  return count, 0, 0
end

local results = {}
for i, key in ipairs(KEYS) do
  local at = 6 * i - 6
  local kind, addend = ARGV[at + 1], tonumber(ARGV[at + 2])
  if any and not (kind == '0' and over[key]) then addend = 0 end
  local together = looks[i] and kind == '2' and not any
  if together then addend = sums[key] end
  local first, room, wait
  if looks[i] and looks[i][1] == 0 or together and last[key] ~= i then
    first, room, wait = unpack(looks[i])
  elseif kind == '0' then
    first, room, wait = fixed(key, addend, ARGV[at + 6])
  else
    first, room, wait = decide(key, at, addend, true)
  end
  results[3 * i - 2], results[3 * i - 1], results[3 * i] = first, room, wait
end
return results
