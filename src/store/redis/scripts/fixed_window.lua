-- Fixed windows, by the epoch or the calendar.
--
--   value       end (seconds, nanoseconds), count, window (two numbers), limit, family
--   parameters  of the calendar also: this window's start and end, the end of the next, and the
--               length of the longest, in seconds
local function fixed_window(k, j, phase, is_calendar)
  local w = state[k]
  if not w then
    w = {}
    local v = was[k]
    if v then
      if #v == 36 then
        w.s, w.n, w.count, w.ws, w.wn, w.limit, w.family = struct.unpack('<I4I4dI4I4dI4', v)
        if not (is_count(w.count) and is_count(w.limit) and w.limit > 0 and w.n < 1e9
            and w.s - now_s < 252288000) then w = {} end
      end
      if not w.s then spoilt(k) end
    end
    state[k] = w
  end
  local es, en
  local length_s, length_n = a[j + 7], a[j + 8]
  if is_calendar then
    es, en = a[j + 10], 0
    if now_s >= es then es = a[j + 11] end
    if now_s >= es then es = a[j + 12] end
    length_s, length_n = a[j + 13], 0
    -- The caller's clock is more than a window behind.
    if now_s >= es then es = es + floor((now_s - es) / length_s + 1) * length_s end
  else
    es, en = window_end(length_s, length_n)
  end
  -- As the clock's window sees it.
  local count, damaged = 0, false
  if w.s and w.ws == a[j + 7] and w.wn == a[j + 8] and above(w.s, w.n, now_s, now_n) then
    count = carried(w.count, j, w.limit, w.family)
    if above(w.s, w.n, es, en) then
      local ds, dn = from(es, en, w.s, w.n)
      damaged = above(ds, dn, length_s, length_n)
      if not damaged then es, en = w.s, w.n end
    end
  end
  if phase == 0 then return fits(j, count) end

  local after = count
  local verb, cost, reserved = a[j], a[j + 1], a[j + 2]
  if phase == 1 then
    local most = 2 * a[j + 5]
    if verb == 0 or verb == 3 then
      after = add_up_to(count, cost, most)
    elseif verb == 2 then
      after = count - math.min(count, cost)
    elseif verb == 4 then
      after = 0
    elseif verb > 4 then
      if cost >= reserved then
        after = add_up_to(count, cost - reserved, most)
      elseif es == a[j + 3] and en == a[j + 4] then
        after = count - math.min(count, reserved - cost)
      end
    end
  end
  if phase == 1 and verb == 4 then
    state[k] = {}
    write[k] = function() call('DEL', KEYS[k]) end
  elseif damaged or (phase == 1 and changes(j) and (count > 0 or after > 0)) then
    w.s, w.n, w.count, w.ws, w.wn, w.limit, w.family =
      es, en, after, a[j + 7], a[j + 8], a[j + 5], a[j + 9]
    write[k] = function()
      local value = struct.pack('<I4I4dI4I4dI4', w.s, w.n, w.count, w.ws, w.wn, w.limit, w.family)
      put(k, value, ttl_for(from(now_s, now_n, w.s, w.n)))
    end
  end
  return after - count, 0, es, en
end

