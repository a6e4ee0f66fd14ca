-- The last m + 1 sub-windows, counted whole.
--
--   value       end of the newest (seconds, nanoseconds), sub-window (two numbers), limit, family,
--               then the counts, the newest first
--   parameters  also the sub-window (two numbers) and how many are counted
local function strict_window(k, j, phase)
  local w = state[k]
  if not w then
    w = {}
    local v = was[k]
    if v then
      local counted = (#v - 28) / 8
      if counted >= 3 and counted <= 61 and counted == floor(counted) then
        w.s, w.n, w.ws, w.wn, w.limit, w.family = struct.unpack('<I4I4I4I4dI4', v)
        w.counts = {struct.unpack('<' .. string.rep('d', counted), v, 29)}
        w.counts[counted + 1] = nil -- Where the reading ended.
        local good = is_count(w.limit) and w.limit > 0 and w.n < 1e9 and w.s - now_s < 252288000
        for i = 1, counted do good = good and is_count(w.counts[i]) end
        if not good then w = {} end
      end
      if not w.s then spoilt(k) end
    end
    state[k] = w
  end
  local ws, wn, counted = a[j + 10], a[j + 11], a[j + 12]
  local es, en = window_end(ws, wn)
  local counts, damaged = {}, false
  if w.s and w.ws == ws and w.wn == wn and #w.counts == counted then
    local shift = 0
    if above(es, en, w.s, w.n) then
      local ds, dn = from(w.s, w.n, es, en)
      shift = math.min(floor((ds * 1e9 + dn) / (ws * 1e9 + wn) + 0.5), counted)
    else
      local ds, dn = from(es, en, w.s, w.n)
      damaged = above(ds, dn, a[j + 7], a[j + 8])
      if not damaged then es, en = w.s, w.n end
    end
    -- The running total is rounded, the newest first, rather than each count.
    local before, after = 0, 0
    for i = 1, counted do
      local count = w.counts[i]
      if w.family ~= a[j + 9] then
        before = before + count
        local total = in_proportion(before, w.limit, a[j + 5])
        count, after = total - after, total
      end
      if i + shift <= counted then counts[i + shift] = count end
    end
    for i = 1, shift do counts[i] = 0 end
  else
    for i = 1, counted do counts[i] = 0 end
  end
  local used = 0
  for i = 1, counted do used = used + counts[i] end
  if phase == 0 then return fits(j, used) end

  local added = 0
  local verb, cost, reserved = a[j], a[j + 1], a[j + 2]
  if phase == 1 then
    local most = 2 * a[j + 5]
    if verb == 0 or verb == 3 then
      added = add_up_to(used, cost, most) - used
    elseif verb == 2 then
      for i = counted, 1, -1 do
        local taken = math.min(counts[i], cost)
        counts[i] = counts[i] - taken
        cost = cost - taken
      end
    elseif verb > 4 then
      if cost >= reserved then
        added = add_up_to(used, cost - reserved, most) - used
      else
        local ds, dn = from(a[j + 3], a[j + 4], es, en)
        local age = floor((ds * 1e9 + dn) / (ws * 1e9 + wn) + 0.5)
        if ds >= 0 and age < counted then
          counts[age + 1] = counts[age + 1] - math.min(counts[age + 1], reserved - cost)
        end
      end
    end
    counts[1] = counts[1] + added
  end
  if phase == 1 and verb == 4 then
    state[k] = {}
    write[k] = function() call('DEL', KEYS[k]) end
  elseif damaged or (phase == 1 and changes(j) and used + added > 0) then
    w.s, w.n, w.ws, w.wn, w.limit, w.family, w.counts =
      es, en, ws, wn, a[j + 5], a[j + 9], counts
    write[k] = function()
      local ago = 0
      while ago < counted - 1 and w.counts[ago + 1] == 0 do ago = ago + 1 end
      local fs, fn = w.s, w.n
      for _ = 1, counted - 1 - ago do fs, fn = plus(fs, fn, w.ws, w.wn) end
      local value = struct.pack('<I4I4I4I4dI4', w.s, w.n, w.ws, w.wn, w.limit, w.family)
      value = value .. struct.pack('<' .. string.rep('d', counted), unpack(w.counts, 1, counted))
      put(k, value, ttl_for(from(now_s, now_n, fs, fn)))
    end
  end
  return added, 0, es, en
end

