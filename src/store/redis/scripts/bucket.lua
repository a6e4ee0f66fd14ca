-- Buckets, all verbs. The value is the time at which the bucket will be full, in nanoseconds.
--
--   parameters  what is done (0: add, 1: give back what is left of a charge, 2: give a place back),
--               add, slack, furthest, most, receipt: two numbers each
local function bucket(k, j, phase)
  local b = state[k]
  if not b then
    b = {}
    local v = was[k]
    if v then
      if find(v, '^%d%d%d%d%d%d%d%d%d%d+$') then
        b.s, b.n = tonumber(sub(v, 1, -10)), tonumber(sub(v, -9))
      end
      if not b.s or b.s - now_s > 252288000 then
        b.s = nil
        spoilt(k)
      end
    end
    state[k] = b
  end
  local ls, ln = 0, 0
  local damaged = false
  if b.s then
    ls, ln = from(now_s, now_n, b.s, b.n)
    if ls < 0 then ls, ln = 0, 0 end
    damaged = above(ls, ln, a[j + 5], a[j + 6])
    if damaged then ls, ln = a[j + 5], a[j + 6] end
  end
  if phase == 0 then return not above(ls, ln, a[j + 3], a[j + 4]) end

  local as, an = ls, ln
  local takes = false
  if phase == 1 then
    local what = a[j]
    if what == 0 then
      as, an = ls + a[j + 1], ln + a[j + 2]
      if an >= 1e9 then as, an = as + 1, an - 1e9 elseif an < 0 then as, an = as - 1, an + 1e9 end
      if above(as, an, a[j + 7], a[j + 8]) then
        as, an = a[j + 7], a[j + 8]
        if above(ls, ln, as, an) then as, an = ls, ln end
      end
      takes = a[j + 1] > 0 or a[j + 2] > 0
    elseif what == 1 then
      local rs, rn = from(now_s, now_n, a[j + 9], a[j + 10])
      if rs < 0 then rs, rn = 0, 0 end
      if above(rs, rn, a[j + 1], a[j + 2]) then rs, rn = a[j + 1], a[j + 2] end
      as, an = from(rs, rn, ls, ln)
    elseif b.s == a[j + 9] and b.n == a[j + 10] then
      as, an = from(a[j + 1], a[j + 2], ls, ln)
    end
    if as < 0 then as, an = 0, 0 end
  end
  local reset = phase == 1 and a[j + 1] == -1 / 0
  local changed = as ~= ls or an ~= ln
  if (as == 0 and an == 0 and (changed or reset)) then
    b.s = nil
    write[k] = function() call('DEL', KEYS[k]) end
  elseif changed or damaged then
    b.s, b.n = plus(now_s, now_n, as, an)
    write[k] = function() put(k, format('%.0f%09.0f', b.s, b.n), ttl_for(as, an)) end
  end
  if not takes then return 0, 0, 0, 0 end
  local xs, xn = from(ls, ln, as, an)
  local rs, rn = plus(now_s, now_n, as, an)
  return xs, xn, rs, rn
end

