-- What nearly every call is: charges on buckets that fill within 50 days, so that levels (how long
-- until full) fit into one number of nanoseconds. The functions further down are not even made.
--
--   parameters  add, slack (allowed if the level is no higher), furthest, most
--   group       how many charges; for each its key and where its parameters are
if a[3] == 0 then
  local level, dirty = {}, {}
  local answers = plain + 3
  local i, last = a[1], #a
  while i < last do
    local stop = i + 2 * a[i]
    local ok = true
    for j = i + 1, stop, 2 do
      local k, p = a[j], a[j + 1]
      local l = level[k]
      if not l then
        l = 0
        local v = was[k]
        if v then
          if find(v, '^%d%d%d%d%d%d%d%d%d%d+$') then
            l = (sub(v, 1, -10) - now_s) * 1e9 + (sub(v, -9) - now_n)
          else
            l = 1 / 0
          end
          if l < 0 then
            l = 0
          elseif l > 252288000e9 then -- Eight years ahead: no clock did that.
            l, corrupt = 0, corrupt + 1
            not_ours[corrupt] = k
            dirty[k] = true
          end
        end
      end
      if l > a[p + 2] then -- Clock damage: mended, whatever the answer.
        l = a[p + 2]
        dirty[k] = true
      end
      level[k] = l
      if l > a[p + 1] then ok = false end
    end
    if ok then
      mask = mask + weight
      for j = i + 1, stop, 2 do
        local k, p = a[j], a[j + 1]
        local add = a[p]
        if add ~= 0 then
          local before = level[k]
          local after = before + add
          if after > a[p + 3] then
            after = a[p + 3]
            if after < before then after = before end
          end
          if after < 0 then after = 0 end
          if after ~= before or add == -1 / 0 then
            level[k] = after
            dirty[k] = true
          end
        end
      end
    end
    weight = weight + weight
    if weight == 281474976710656 then
      was[answers] = mask
      answers, mask, weight = answers + 1, 0, 1
    end
    i = stop + 1
  end
  for k in pairs(dirty) do
    local l = level[k]
    if l > 0 then
      local low = l % 1e9
      local n, s = now_n + low, now_s + (l - low) / 1e9
      if n >= 1e9 then n, s = n - 1e9, s + 1 end
      local value, ttl = format('%d%09d', s, n), format('%d', (l + 1999999) / 1e6)
      if was[k] then
        call('SET', KEYS[k], value, 'PX', ttl)
      elseif not call('SET', KEYS[k], value, 'PX', ttl, 'NX') then
        -- Read as nothing, and yet there is something: not a string.
        corrupt = corrupt + 1
        call('SET', KEYS[k], value, 'PX', ttl)
      end
    else
      call('DEL', KEYS[k])
    end
  end
  was[plain + 1] = time[1]
  was[plain + 2] = time[2]
  was[answers] = mask
  was[answers + 1] = corrupt
  for i = 1, #not_ours do was[answers + 1 + i] = not_ours[i] end
  return was
end

