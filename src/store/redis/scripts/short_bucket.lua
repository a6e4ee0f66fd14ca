-- What nearly every call is: charges on buckets that fill within 50 days, so that levels (how long
-- until full) fit into one number of nanoseconds. The functions further down are not even made, and
-- what is worked out is kept among the numbers that came with the call: tables that grow are dear.
--
--   keys        for each its level, -1 as long as it is not known; then for each whether it changed
--   parameters  add, slack (allowed if the level is no higher), furthest, most
--   group       how many charges; for each its key and where its parameters are
if a[3] == 0 then
  local changed = 3 + plain
  local masks
  local i, last = a[1], #a
  while i < last do
    local stop = i + 2 * a[i]
    local ok = true
    for j = i + 1, stop, 2 do
      local k, p = a[j], a[j + 1]
      local l = a[3 + k]
      if l < 0 then
        l = 0
        local v = was[k]
        if not v then
          was[k] = ''
        else
          if find(v, '^%d%d%d%d%d%d%d%d%d%d+$') then
            l = (sub(v, 1, -10) - now_s) * 1e9 + (sub(v, -9) - now_n)
          else
            l = 1 / 0
          end
          if l < 0 then
            l = 0
          elseif l > 252288000e9 then -- Eight years ahead: no clock did that.
            l, corrupt = 0, corrupt + 1
            not_ours = not_ours or {}
            not_ours[#not_ours + 1] = k
            a[changed + k] = 1
          end
        end
        a[3 + k] = l
      end
      if l > a[p + 2] then -- Clock damage: mended, whatever the answer.
        l = a[p + 2]
        a[3 + k] = l
        a[changed + k] = 1
      end
      if l > a[p + 1] then ok = false end
    end
    if ok then
      mask = mask + weight
      for j = i + 1, stop, 2 do
        local add = a[a[j + 1]]
        if add ~= 0 then
          local k, p = a[j], a[j + 1]
          local before = a[3 + k]
          local after = before + add
          if after > a[p + 3] then
            after = a[p + 3]
            if after < before then after = before end
          end
          if after < 0 then after = 0 end
          if after ~= before or add == -1 / 0 then
            a[3 + k] = after
            a[changed + k] = 1
          end
        end
      end
    end
    weight = weight + weight
    if weight == 70368744177664 then
      masks = masks or {}
      masks[#masks + 1] = mask
      mask, weight = 0, 1
    end
    i = stop + 1
  end
  for k = 1, plain do
    if a[changed + k] ~= 0 then
      local l = a[3 + k]
      if l > 0 then
        local low = l % 1e9
        local n, s = now_n + low, now_s + (l - low) / 1e9
        if n >= 1e9 then n, s = n - 1e9, s + 1 end
        local value, ttl = format('%d%09d', s, n), format('%d', (l + 1999999) / 1e6)
        -- What was there before is known, and cheaper to be told than that all went well.
        if was[k] ~= '' then
          call('SET', KEYS[k], value, 'PX', ttl, 'GET')
        else
          local before = redis.pcall('SET', KEYS[k], value, 'PX', ttl, 'GET')
          if before and before ~= '' then
            -- Read as nothing, and yet there is something: not a string.
            corrupt = corrupt + 1
            call('SET', KEYS[k], value, 'PX', ttl)
          end
        end
      else
        call('DEL', KEYS[k])
      end
    end
  end
  if corrupt == 0 then
    if masks then mask = table.concat(masks, ' ') .. ' ' .. mask end
    return time[1] .. ' ' .. time[2] .. ' ' .. mask .. ' ' .. table.concat(was, ' ')
  end
  local answer = {time[1] * 1e6 + time[2]}
  if masks then
    for c = 1, #masks do answer[1 + c] = masks[c] end
  end
  local n = #answer + 1
  answer[n] = mask
  for k = 1, plain do answer[n + k] = was[k] end -- An empty one is no bucket either.
  n = n + plain
  if corrupt > 0 then
    answer[n + 1] = corrupt
    if not_ours then
      for c = 1, #not_ours do answer[n + 1 + c] = not_ours[c] end
    end
  end
  return answer
end

