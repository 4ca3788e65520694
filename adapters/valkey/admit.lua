-- Decides about hits of all algorithms, by the clock of the server. Each hit has a key and six arguments:
-- algorithm (0 fixed window, 1 sliding window, 2 token bucket), addend, limit, window in microseconds,
-- burst, and time to live of a fixed window in milliseconds. The last argument is the mode: 0 decides
-- about each hit by itself, 1 counts nothing within its limit if any hit is refused, 2 counts nothing.
-- It returns three numbers for each hit: for a fixed window the count; else 1 if it is admitted or 0,
-- the hits that fit then, and the microseconds until the reset.
--
-- A sliding window is stored as its number, its count and the earlier one; a token bucket as the time at
-- which it is full, in microseconds since 2023-11-14. Each hit delays it by a time that is rounded up to 1/64,
-- which the numbers of Lua hold exactly until May 2028; after that they hold 1/32 until 2032, and 1/16 until
-- 2041. A bucket that is more than empty, because its limit or its burst was changed, is cut to empty when it
-- is read.
local mode = tonumber(ARGV[#ARGV])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local epoch = 1700000000000000
local states, sums, results, refused, any = {}, {}, {}, {}, false

local function covered(hits, part, whole) return math.ceil(hits * part / whole) end

local function until_covered(hits, room, length)
  if hits <= room then return 0 end
  return length - math.floor(room * length / hits)
end

local function delay(hits, limit, length) return math.ceil(hits * length / limit * 64) / 64 end

local function store_bucket(key, full, exists)
  local life = math.min(math.ceil((full - (now - epoch)) / 1000), 9e15)
  if life > 0 then
    redis.call('SET', key, string.format('%.6f', full), 'PX', string.format('%.0f', life))
  elseif exists then
    redis.call('DEL', key)
  end
  return life > 0
end

local function read(key, kind, length, limit, burst)
  if states[key] then return states[key] end
  local state
  local text = redis.call('GET', key)
  if kind == 0 then
    state = {count = tonumber(text or '0'), exists = text}
  elseif kind == 1 then
    local window, current, earlier = math.floor(now / length), 0, 0
    if text then
      local w, c, e = string.match(text, '^(%d+):(%d+):(%d+)$')
      w, c, e = tonumber(w), tonumber(c), tonumber(e)
      if not w then text = nil -- not written by this script
      elseif w >= window then window, current, earlier = w, c, e
      elseif w == window - 1 then earlier = c end
    end
    state = {window = window, current = current, earlier = earlier, exists = text}
  else
    local empty = now - epoch + delay(burst, limit, length)
    state = {full = math.max(tonumber(text or '0') or 0, now - epoch), exists = text}
    if state.full > empty then
      state.full, state.exists = empty, store_bucket(key, empty, text)
    end
  end
  states[key] = state
  return state
end

local function bucket_room(full, limit, length, burst)
  local free = delay(burst, limit, length) - (full - (now - epoch))
  if free <= 0 then return 0 end
  local n = math.min(math.floor(free * limit / length), burst)
  while n > 0 and delay(n, limit, length) > free do n = n - 1 end
  return n
end

-- decide returns whether hits are admitted, how many fit then, the time until the reset, and the new state.
local function decide(state, kind, addend, limit, length, burst)
  if kind == 1 then
    local elapsed = math.max(now - state.window * length, 0)
    local function room(current) return math.max(limit - current - covered(state.earlier, length - elapsed, length), 0) end
    local fits = room(state.current)
    if addend > fits then
      local wait
      if addend > limit then wait = length
      elseif state.current <= limit - addend then wait = until_covered(state.earlier, limit - addend - state.current, length) - elapsed
      else wait = length - elapsed + until_covered(state.current, limit - addend, length) end
      return 0, fits, wait, state.current
    end
    local current = math.max(state.current + addend, 0)
    return 1, room(current), length - elapsed, current
  end
  local at = now - epoch
  local full = state.full
  if addend > 0 then
    local wait, capacity = delay(addend, limit, length), delay(burst, limit, length)
    if addend > burst then return 0, bucket_room(full, limit, length, burst), length, full end
    if full - at + wait > capacity then return 0, bucket_room(full, limit, length, burst), full - at + wait - capacity, full end
    full = full + wait
  elseif addend < 0 then
    full = math.max(full - delay(-addend, limit, length), at)
  end
  return 1, bucket_room(full, limit, length, burst), full - at, full
end

local function store(key, state, kind, addend, length, ttl, value)
  if kind == 0 then
    if addend == 0 or (addend < 0 and not state.exists) then return end
    state.count = math.max(state.count + addend, 0)
    if state.exists then
      redis.call('SET', key, string.format('%.0f', state.count), 'KEEPTTL')
    else
      redis.call('SET', key, string.format('%.0f', state.count), 'PX', ttl)
      state.exists = true
    end
  elseif kind == 1 then
    state.current = value
    if value == 0 and not state.exists then return end
    local life = math.max(math.ceil(((state.window + 2) * length - now) / 1000), 1)
    redis.call('SET', key, string.format('%.0f:%.0f:%.0f', state.window, value, state.earlier), 'PX', string.format('%.0f', life))
    state.exists = true
  else
    state.full, state.exists = value, store_bucket(key, value, state.exists)
  end
end

local function arguments(i)
  local at = 6 * i - 5
  return tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5]
end

if mode > 0 then
  for i, key in ipairs(KEYS) do
    local kind, addend, limit, length, burst = arguments(i)
    local state = read(key, kind, length, limit, burst)
    sums[key] = (sums[key] or 0) + addend
    if kind == 0 then
      if math.max(state.count + sums[key], 0) > limit then refused[key], any = true, true end
    else
      local admitted, room, wait = decide(state, kind, sums[key], limit, length, burst)
      if admitted == 0 then
        refused[key], any = true, true
        results[i] = {0, room, wait}
      end
    end
  end
end

local flat = {}
for i, key in ipairs(KEYS) do
  local kind, addend, limit, length, burst, ttl = arguments(i)
  local state = read(key, kind, length, limit, burst)
  local result = results[i]
  if not result then
    if mode == 2 or (any and not (refused[key] and kind == 0)) then addend = 0 end
    if kind == 0 then
      store(key, state, kind, addend, length, ttl)
      result = {state.count, 0, 0}
    else
      local admitted, room, wait, value = decide(state, kind, addend, limit, length, burst)
      if admitted == 1 and addend ~= 0 then store(key, state, kind, addend, length, ttl, value) end
      result = {admitted, room, wait}
    end
  end
  flat[3 * i - 2], flat[3 * i - 1], flat[3 * i] = result[1], result[2], math.ceil(result[3])
end
return flat
