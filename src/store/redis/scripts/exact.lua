-- Arithmetic on times of two numbers, and products that do not fit into one.
local floor = math.floor

-- From one time to another, the nanoseconds from 0 up.
local function from(as, an, bs, bn)
  local s, n = bs - as, bn - an
  if n < 0 then return s - 1, n + 1e9 end
  return s, n
end

local function plus(as, an, bs, bn)
  local s, n = as + bs, an + bn
  if n >= 1e9 then return s + 1, n - 1e9 end
  return s, n
end

local function above(as, an, bs, bn) return as > bs or (as == bs and an > bn) end

-- In milliseconds, rounded up, and one more, because the server's own clock of expiry leaves out
-- what is less than one; at most ten years.
local function ttl_for(s, n)
  local ms = s * 1000 + floor((n + 1999999) / 1e6)
  if not (ms >= 1) then ms = 1 elseif ms > 315360000000 then ms = 315360000000 end
  return format('%.0f', ms)
end

-- How often c goes into a * b, a and the outcome being below 2^51, and what is left. Guesses, then
-- works out a * b - guess * c digit by digit, 17 bits each, and corrects the guess, which is off by
-- one or two at most.
local function divide_product(a, bs, bn, cs, cn)
  local guess = floor(a * ((bs * 1e9 + bn) / (cs * 1e9 + cn)))
  local s, n = 0, 0
  for shift = 34, 0, -17 do
    local digit = 2 ^ shift
    local x = floor(a / digit) % 131072
    local y = floor(guess / digit) % 131072
    n = n * 131072 + x * bn - y * cn
    local carry = floor(n / 1e9)
    n = n - carry * 1e9
    s = s * 131072 + x * bs - y * cs + carry
  end
  while s < 0 do
    guess = guess - 1
    s, n = plus(s, n, cs, cn)
  end
  while not above(cs, cn, s, n) do
    guess = guess + 1
    s, n = from(cs, cn, s, n)
  end
  return guess, s > 0 or n > 0
end

-- The end of the window of that length that now is in; windows begin with 1970.
local function window_end(ws, wn)
  local unix = now_s + 1735689600
  if wn == 0 then return now_s - unix % ws + ws, 0 end
  local es, en
  if ws < 9000 then
    local w = ws * 1e9 + wn
    local elapsed = unix % w * 1000 % w * 1000 % w * 1000 % w
    elapsed = (elapsed + now_n) % w
    en = elapsed % 1e9
    es = (elapsed - en) / 1e9
  else
    local times = floor((unix + now_n / 1e9) / (ws + wn / 1e9))
    es, en = unix - times * ws, now_n - times * wn
    local carry = floor(en / 1e9)
    es, en = es + carry, en - carry * 1e9
    while es < 0 do es, en = plus(es, en, ws, wn) end
    while not above(ws, wn, es, en) do es, en = from(ws, wn, es, en) end
  end
  local s, n = from(es, en, ws, wn)
  return plus(now_s, now_n, s, n)
end

-- Counts, held at `most`; never lowers one that is above it already.
local function add_up_to(count, cost, most)
  if count >= most then return count end
  if cost > most - count then return most end
  return count + cost
end

-- A count under a limit that was replaced by another: in proportion, rounded up.
local function in_proportion(count, before, after)
  if count >= 2 * before then return 2 * after end
  local times, more
  if count * after < 9007199254740992 then
    times = floor(count * after / before)
    more = times * before ~= count * after
  else
    local an, bn = after % 1e9, before % 1e9
    times, more = divide_product(count, (after - an) / 1e9, an, (before - bn) / 1e9, bn)
  end
  if more then times = times + 1 end
  if times > 2 * after then return 2 * after end
  return times
end

local function is_count(x) return x >= 0 and x <= 4e15 and x == floor(x) end

-- What is known of keys, by their numbers, and what is to be done with those that changed.
local state, write = {}, {}
-- What charges on logs saw, in their order.
local seen = {}

local function spoilt(k)
  corrupt = corrupt + 1
  not_ours = not_ours or {}
  not_ours[#not_ours + 1] = k
  write[k] = write[k] or function() call('DEL', KEYS[k]) end
end

-- Writes a plain value. Where none could be read, there may be something that is not a string.
local function put(k, value, ttl)
  local before = redis.pcall('SET', KEYS[k], value, 'PX', ttl, 'GET')
  if type(before) == 'table' then
    corrupt = corrupt + 1
    call('SET', KEYS[k], value, 'PX', ttl)
  end
end

