-- Decides about one hit of a sliding window (1) or a token bucket (2), as admit.lua does about many, with
-- the same keys, values and results. It takes two thirds of the time of the server. The arguments are
-- algorithm, addend, limit, window in microseconds, and burst.
local key, addend, limit, length = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local text = redis.call('GET', key)

if ARGV[1] == '1' then
  local window, current, earlier = floor(now / length), 0, 0
  if text then
    local w, c, e = string.match(text, '^(%d+):(%d+):(%d+)$')
    w = tonumber(w)
    if not w then text = nil -- not written by a script
    elseif w >= window then window, current, earlier = w, tonumber(c), tonumber(e)
    elseif w == window - 1 then earlier = tonumber(c) end
  end
  local elapsed = max(now - window * length, 0)
  local covered = ceil(earlier * (length - elapsed) / length)
  local fits = max(limit - current - covered, 0)
  if addend > fits then
    if addend > limit then return {0, fits, length} end
    local hits, room, wait = earlier, limit - addend - current, -elapsed
    if room < 0 then hits, room, wait = current, limit - addend, length - elapsed end
    if hits > room then wait = wait + length - floor(room * length / hits) end
    return {0, fits, ceil(wait)}
  end
  if addend ~= 0 then
    current = max(current + addend, 0)
    if current > 0 or text then
      local life = max(ceil(((window + 2) * length - now) / 1000), 1)
      redis.call('SET', key, string.format('%.0f:%.0f:%.0f', window, current, earlier), 'PX', string.format('%.0f', life))
    end
  end
  return {1, max(limit - current - covered, 0), ceil(length - elapsed)}
end

local at, burst = now - 1700000000000000, tonumber(ARGV[5])
local function delay(hits) return ceil(hits * length / limit * 64) / 64 end
local full, capacity = max(tonumber(text or '0') or 0, at), delay(burst)
local admitted, reset, changed = 1, nil, full > at + capacity
if changed then full = at + capacity end -- the limit or the burst was changed
if addend > burst then
  admitted, reset = 0, length
elseif addend > 0 and full - at + delay(addend) > capacity then
  admitted, reset = 0, full - at + delay(addend) - capacity
elseif addend ~= 0 then
  full, changed = addend > 0 and full + delay(addend) or max(full - delay(-addend), at), true
end
if changed then
  local life = min(ceil((full - at) / 1000), 9e15)
  if life > 0 then
    redis.call('SET', key, string.format('%.6f', full), 'PX', string.format('%.0f', life))
  elseif text then
    redis.call('DEL', key)
  end
end
local free, room = capacity - (full - at), 0
if free > 0 then
  room = min(floor(free * limit / length), burst)
  while room > 0 and delay(room) > free do room = room - 1 end
end
return {admitted, room, ceil(reset or full - at)}
