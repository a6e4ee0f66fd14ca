-- Admissions one by one, for the sliding log and for leases. A string, read and written in parts,
-- so that a check costs the same however long the log is. Dates are whole microseconds, as TIME is.
--
--   value       window in microseconds (rounded up, rounded down), limit, total, first and last
--               date, family, where the first event is, where the last ends, how many were given
--               back; from byte 64 on the events: date, cost (0 once given back)
--   parameters  as for counts; the window as above
--   seen        used and last date before, the same after, the date of the event with whose end a
--               request that was denied would fit
local event_log
if #KEYS > plain then
  local now = now_s * 1e6 + now_n / 1000

  local function fetch(k, log, low, high)
    if low < log.head then low = log.head end
    if high > log.stored then high = log.stored end
    local text, place = call('GETRANGE', KEYS[k], 64 + low * 10, 63 + high * 10), 1
    for i = low, high - 1 do
      local at, cost
      at, cost, place = struct.unpack('<dH', text, place)
      if not log.cost[i] then log.at[i], log.cost[i] = at, cost end
    end
  end

  -- The cost of an event, looking further ahead every time.
  local function cost_at(k, log, i)
    if not log.cost[i] then
      fetch(k, log, i, i + log.ahead)
      if log.ahead < 1024 then log.ahead = log.ahead * 2 end
    end
    return log.cost[i]
  end

  local function date_at(k, log, i)
    if not log.at[i] then fetch(k, log, i, i + 1) end
    return log.at[i]
  end

  local function empty(j)
    return {up = a[j + 7], down = a[j + 8], limit = a[j + 5], family = a[j + 9], total = 0,
      head = 0, tail = 0, stored = 0, holes = 0, first = -1, last = -1, ahead = 32,
      at = {}, cost = {}, changed = {}, whole = true}
  end

  local function read(k, j)
    local text = redis.pcall('GETRANGE', KEYS[k], 0, 223)
    -- Of another type it is not ours. What is not allowed must fail, or it would never be counted.
    if type(text) == 'table' and not find(text.err, 'WRONGTYPE', 1, true) then
      call('GETRANGE', KEYS[k], 0, 223)
    end
    if text == '' then return empty(j) end
    local log = empty(j)
    local good = type(text) == 'string' and #text >= 64
    if good then
      log.whole = false
      log.up, log.down, log.limit, log.total, log.first, log.last, log.family, log.head, log.tail,
        log.holes = struct.unpack('<ddddddI4I4I4I4', text)
      log.stored = log.tail
      good = is_count(log.up) and is_count(log.down) and is_count(log.limit) and log.limit > 0
        and is_count(log.total) and is_count(log.first) and is_count(log.last)
        and log.head < log.tail and log.tail < 1e6 and log.last - now < 252288000e6
        and call('STRLEN', KEYS[k]) >= 64 + 10 * log.tail
    end
    if not good then
      spoilt(k)
      return empty(j)
    end
    local place = 65
    for i = 0, math.min((#text - 64) / 10, log.tail) - 1 do
      if i >= log.head then log.at[i], log.cost[i] = struct.unpack('<dH', text, place) end
      place = place + 10
    end
    return log
  end

  local function fetch_all(k, log)
    if log.whole then return end
    fetch(k, log, log.head, log.stored)
    log.whole = true
  end

  local function mark(k, log)
    write[k] = function()
      if log.head >= log.tail then return call('DEL', KEYS[k]) end
      local ms = floor((log.last + log.up - now + 999) / 1000)
      local ttl = ttl_for(floor(ms / 1000), ms % 1000 * 1e6)
      local head, tail = log.head, log.tail
      -- What has gone from the front would only take up room.
      local moves = not log.whole and head > 64 and head > tail - head
      local base = (log.whole or moves) and head or 0
      local text = struct.pack('<ddddddI4I4I4I4', log.up, log.down, log.limit, log.total, log.first,
        log.last, log.family, head - base, tail - base, log.holes)
      if log.whole then
        local parts = {text}
        for i = log.head, log.tail - 1 do
          parts[#parts + 1] = struct.pack('<dH', log.at[i], log.cost[i])
        end
        call('SET', KEYS[k], table.concat(parts), 'PX', ttl)
        return
      end
      for i in pairs(log.changed) do
        if i >= head and i < tail then
          call('SETRANGE', KEYS[k], 64 + i * 10, struct.pack('<dH', log.at[i], log.cost[i]))
        end
      end
      if moves then
        text = text .. call('GETRANGE', KEYS[k], 64 + head * 10, 63 + tail * 10)
        call('SET', KEYS[k], text, 'PX', ttl)
      else
        call('SETRANGE', KEYS[k], 0, text)
        call('PEXPIRE', KEYS[k], ttl)
      end
    end
  end

  -- Drops from the front what is over, and what was given back.
  local function drop_front(k, log)
    local head = log.head
    while log.head < log.tail do
      local cost = cost_at(k, log, log.head)
      if cost > 0 and log.at[log.head] + log.up > now then break end
      log.total = log.total - cost
      if cost == 0 then log.holes = log.holes - 1 end
      log.head = log.head + 1
    end
    if log.head == head then return end
    if log.head < log.tail then log.first = log.at[log.head] else log.last, log.total = -1, 0 end
    mark(k, log)
  end

  -- Even a mere look lets go of what is over.
  local function expire(k, log)
    if log.head >= log.tail then return end
    if log.last - now > log.down then -- Clock damage: what is of the future counts as of now.
      fetch_all(k, log)
      for i = log.head, log.tail - 1 do
        if log.at[i] > now then log.at[i] = now end
      end
      log.last = now
      log.first = log.at[log.head]
      mark(k, log)
    end
    if log.last + log.up <= now then
      log.head, log.last, log.total, log.holes = log.tail, -1, 0, 0
      mark(k, log)
    elseif log.first + log.up <= now then
      drop_front(k, log)
    end
  end

  -- Another limit took over.
  local function carry(k, log, j)
    fetch_all(k, log)
    local before, after = 0, 0
    for i = log.head, log.tail - 1 do
      before = before + log.cost[i]
      local total = in_proportion(before, log.limit, a[j + 5])
      local cost = total - after
      if log.cost[i] > 0 and cost == 0 then log.holes = log.holes + 1 end
      log.cost[i], after = cost, total
    end
    log.total, log.limit, log.family = after, a[j + 5], a[j + 9]
    mark(k, log)
    drop_front(k, log)
  end

  local function change(log, i, by)
    local cost = log.cost[i] + by
    if log.cost[i] > 0 and cost == 0 then log.holes = log.holes + 1 end
    log.cost[i] = cost
    log.total = log.total + by
    log.changed[i] = true
  end

  local function add(k, log, j, cost)
    local charged = add_up_to(log.total, cost, 2 * a[j + 5]) - log.total
    if charged == 0 then return end
    local date = math.max(log.last, now)
    if log.last == date then
      cost_at(k, log, log.tail - 1)
      change(log, log.tail - 1, charged)
      return
    end
    if log.head >= log.tail then log.first = date end
    log.at[log.tail], log.cost[log.tail] = date, 0
    log.tail = log.tail + 1
    log.last = date
    change(log, log.tail - 1, charged)
  end

  -- Gives back from the oldest on, or only from those of one date.
  local function give_back(k, log, cost, date)
    local i = log.head
    if date then
      local low, high = log.head, log.tail
      while low < high do
        local middle = floor((low + high) / 2)
        if date_at(k, log, middle) < date then low = middle + 1 else high = middle end
      end
      i = low
    end
    while i < log.tail and cost > 0 do
      local taken = math.min(cost_at(k, log, i), cost)
      if date and log.at[i] ~= date then break end
      if taken > 0 then change(log, i, -taken) end
      cost = cost - taken
      i = i + 1
    end
  end

  local function tidy(k, log)
    while log.head < log.tail do
      local i = log.tail - 1
      if not log.cost[i] then fetch(k, log, i - 31, i + 1) end
      if log.cost[i] > 0 then break end
      log.tail = i
      log.holes = log.holes - 1
    end
    if log.head >= log.tail then
      log.last, log.total = -1, 0
      return
    end
    log.last = date_at(k, log, log.tail - 1)
    drop_front(k, log)
    if log.holes <= 8 or log.holes <= (log.tail - log.head) / 2 then return end
    fetch_all(k, log)
    local at, cost, n = {}, {}, 0
    for i = log.head, log.tail - 1 do
      if log.cost[i] > 0 then
        at[n], cost[n] = log.at[i], log.cost[i]
        n = n + 1
      end
    end
    log.at, log.cost, log.head, log.tail, log.holes = at, cost, 0, n, 0
  end

  -- The date of the event that has to go for so much to fit.
  local function fits_with(k, log, room)
    local used = log.total
    for i = log.head, log.tail - 1 do
      used = used - cost_at(k, log, i)
      if used <= room then return log.at[i] end
    end
    return log.last
  end

  event_log = function(k, j, phase)
    local log = state[k]
    if phase == 0 then
      if not log then log = read(k, j) end
      if log.up ~= a[j + 7] or log.down ~= a[j + 8] then log = empty(j) end
      state[k] = log
      expire(k, log)
      -- A policy that changed elsewhere leaves it as it is.
      if log.limit == a[j + 5] then log.family = a[j + 9] end
      if log.family ~= a[j + 9] then carry(k, log, j) end
      return fits(j, log.total)
    end
    local used, last, fits_at = log.total, log.last, -1
    local verb, cost, reserved = a[j], a[j + 1], a[j + 2]
    if phase == 1 and changes(j) then
      if verb == 0 or verb == 3 then
        add(k, log, j, cost)
      elseif verb == 2 then
        give_back(k, log, cost)
      elseif verb == 4 then
        log = empty(j)
        state[k] = log
      elseif cost >= reserved then
        add(k, log, j, cost - reserved)
      else
        give_back(k, log, reserved - cost, a[j + 3] * 1e6 + a[j + 4] / 1000)
      end
      tidy(k, log)
      log.limit = a[j + 5]
      mark(k, log)
    elseif not fits(j, used) and a[j + 6] <= a[j + 5] then
      fits_at = fits_with(k, log, a[j + 5] - a[j + 6])
    end
    seen[#seen + 1] = struct.pack('<ddddd', used, last, log.total, log.last, fits_at)
    local date = math.max(log.last, now)
    local rs = floor(date / 1e6)
    return log.total - used, 0, rs, (date - rs * 1e6) * 1000
  end
end

