-- Two windows, the former one weighted by how much of it the last period still covers.
--
--   value  end (seconds, nanoseconds), previous, current, window (two numbers), limit, family
local function weighted(previous, ls, ln, ws, wn)
  if previous == 0 then return 0 end
  if above(ls, ln, ws, wn) then ls, ln = ws, wn end
  local product = previous * (ls * 1e9 + ln)
  if product < 9007199254740992 then return floor(product / (ws * 1e9 + wn)) end
  return (divide_product(previous, ls, ln, ws, wn))
end

local function sliding_window(k, j, phase)
  local w = state[k]
  if not w then
    w = {}
    local v = was[k]
    if v then
      if #v == 44 then
        w.s, w.n, w.previous, w.current, w.ws, w.wn, w.limit, w.family =
          struct.unpack('<I4I4ddI4I4dI4', v)
        if not (is_count(w.previous) and is_count(w.current) and is_count(w.limit) and w.limit > 0
            and w.n < 1e9 and w.s - now_s < 252288000) then w = {} end
      end
      if not w.s then spoilt(k) end
    end
    state[k] = w
  end
  local ws, wn = a[j + 7], a[j + 8]
  local es, en = window_end(ws, wn)
  local previous, current, damaged = 0, 0, false
  if w.s and w.ws == ws and w.wn == wn then
    if above(es, en, w.s, w.n) then
      local ds, dn = from(w.s, w.n, es, en)
      if ds == ws and dn == wn then previous = carried(w.current, j, w.limit, w.family) end
    else
      previous = carried(w.previous, j, w.limit, w.family)
      current = carried(w.current, j, w.limit, w.family)
      local ds, dn = from(es, en, w.s, w.n)
      damaged = above(ds, dn, ws, wn)
      if not damaged then es, en = w.s, w.n end
    end
  end
  local ls, ln = from(now_s, now_n, es, en)
  local used = weighted(previous, ls, ln, ws, wn) + current
  if phase == 0 then return fits(j, used) end

  local held, before = previous + current, current
  local verb, cost, reserved = a[j], a[j + 1], a[j + 2]
  if phase == 1 then
    local most = 2 * a[j + 5]
    if verb == 0 or verb == 3 then
      current = current + add_up_to(used, cost, most) - used
    elseif verb == 2 then
      local taken = math.min(previous, cost)
      previous = previous - taken
      current = current - math.min(current, cost - taken)
    elseif verb > 4 then
      if cost >= reserved then
        current = current + add_up_to(used, cost - reserved, most) - used
      else
        cost = reserved - cost
        local rs, rn = from(a[j + 3], a[j + 4], es, en)
        if rs == 0 and rn == 0 then
          current = current - math.min(current, cost)
        elseif rs == ws and rn == wn then
          previous = previous - math.min(previous, cost)
        end
      end
    end
  end
  if phase == 1 and verb == 4 then
    state[k] = {}
    write[k] = function() call('DEL', KEYS[k]) end
  elseif damaged or (phase == 1 and changes(j) and (held > 0 or previous + current > 0)) then
    w.s, w.n, w.previous, w.current, w.ws, w.wn, w.limit, w.family =
      es, en, previous, current, ws, wn, a[j + 5], a[j + 9]
    write[k] = function()
      local value = struct.pack('<I4I4ddI4I4dI4', w.s, w.n, w.previous, w.current, w.ws, w.wn,
        w.limit, w.family)
      local fs, fn = w.s, w.n
      if w.current > 0 then fs, fn = plus(fs, fn, w.ws, w.wn) end
      put(k, value, ttl_for(from(now_s, now_n, fs, fn)))
    end
  end
  return current - before, 0, es, en
end

