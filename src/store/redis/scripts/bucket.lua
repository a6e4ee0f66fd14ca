-- Buckets, all verbs. The value is the time at which the bucket will be full, in nanoseconds.
--
--   parameters  what is done (0: add, 1: give back what is left of a charge, 2: give a place back),
--               add, slack, furthest, most, receipt: two numbers each; then, if a charge is undone
--               because its request was denied elsewhere, the key of what else was undone, and when
--               it was taken
--
-- Charges drain in the order in which they came, so what is left of one follows from its receipt,
-- the time at which the bucket was going to be full after it, and from what was undone since of
-- those before it. That is remembered for a second, which is longer than a request takes.
local at = time[1] * 1e6 + time[2]

-- What was undone under the key: for each when it was taken, when it was undone, its receipt, and
-- how much was given back, the last two in two numbers.
local function undone_under(k)
  local list = state[k]
  if list then return list end
  list = {}
  local v = was[k] or ''
  was[k] = '' -- Nobody else wants it.
  if #v % 48 ~= 0 then
    spoilt(k)
    v = ''
  end
  for p = 1, #v - 47, 48 do
    local one = {struct.unpack('<dddddd', v, p)}
    if at - one[2] < 1e6 then list[#list + 1] = one end
  end
  state[k] = list
  return list
end

-- What is left of a charge that is undone, unless the bucket has less.
local function left_of_undone(j, list)
  local taken, rs, rn = a[j + 12], a[j + 9], a[j + 10]
  local ls, ln = from(now_s, now_n, rs, rn)
  -- Those of the same microsecond came before it if they were full before it; unless something was
  -- undone just then, so that it began earlier than they ended. Nothing is known of an order that
  -- the clock did not keep.
  local known, unclear = at - taken < 1e6, false
  for _, one in ipairs(list) do
    if one[2] == taken or one[3] < 0 and one[2] > taken then unclear = true end
    if one[1] > one[2] or one[2] > at then known = false end
  end
  for _, one in ipairs(list) do
    local before = one[1] < taken
      or one[1] == taken and (unclear or above(rs, rn, one[3], one[4]))
    if before and one[2] >= taken then ls, ln = from(one[5], one[6], ls, ln) end
  end
  if ls < 0 or not known then ls, ln = 0, 0 end
  if above(ls, ln, a[j + 1], a[j + 2]) then ls, ln = a[j + 1], a[j + 2] end
  -- In any case no more of it has drained than there was time for.
  local passed = at - taken
  if passed >= 0 then
    local micros = passed % 1e6
    local es, en = from((passed - micros) / 1e6, micros * 1000, a[j + 1], a[j + 2])
    if above(es, en, ls, ln) then ls, ln = es, en end
  end
  return ls, ln
end

-- Makes one of the two that are nearest to each other, for how long ago they are. It counts for
-- everybody for whom one of the two would.
local function shorten(list)
  local nearest, i = 1 / 0, 1
  for c = 1, #list - 1 do
    local gap = (list[c + 1][2] - list[c][2]) / math.max(1, at - list[c][2])
    if gap < nearest then nearest, i = gap, c end
  end
  local one, other = list[i], table.remove(list, i + 1)
  local stepped = one[1] > one[2] or other[1] > other[2]
  one[1] = stepped and 1 / 0 or math.min(one[1], other[1])
  one[2] = math.max(one[2], other[2])
  one[3], one[4] = -1, 0
  one[5], one[6] = plus(one[5], one[6], other[5], other[6])
end

local function note_undone(j, list, gs, gn)
  list[#list + 1] = {a[j + 12], at, a[j + 9], a[j + 10], gs, gn}
  if #list > 32 then shorten(list) end
  local k = a[j + 11]
  write[k] = function()
    local texts = {}
    for i, one in ipairs(list) do texts[i] = struct.pack('<dddddd', unpack(one)) end
    put(k, table.concat(texts), '1000')
  end
end

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
    elseif what == 1 and a[j + 11] > 0 then
      local list = undone_under(a[j + 11])
      local rs, rn = left_of_undone(j, list)
      if above(rs, rn, ls, ln) then rs, rn = ls, ln end
      if rs > 0 or rn > 0 then note_undone(j, list, rs, rn) end
      as, an = from(rs, rn, ls, ln)
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

