-- A call for one charge on one bucket, of the kind that short_bucket.lua has and by its rules, but
-- nothing has to be gathered. Where little goes on this is nearly every call.
--
--   ARGV[1]  add, slack, furthest, most; there is no ARGV[2]
if not ARGV[2] then
  local key = KEYS[1]
  local add, slack, furthest, most = struct.unpack('<dddd', ARGV[1])
  local v = redis.pcall('GET', key) or ''
  local l, changed, corrupt = 0, false, 0
  if v ~= '' then
    if #v > 9 and find(v, '^%d+$') then
      l = (sub(v, 1, -10) - now_s) * 1e9 + (sub(v, -9) - now_n)
    elseif v.err and not find(v.err, 'WRONGTYPE', 1, true) then
      return v
    else
      l = 1 / 0
    end
    if l < 0 then
      l = 0
    elseif l > 252288000e9 then
      l, changed, corrupt = 0, true, 1
    elseif l > furthest then
      l, changed = furthest, true
    end
  end
  local mask = 0
  if l <= slack then
    mask = 1
    local after = l + add
    if after > most then after = most < l and l or most end
    if after < 0 then after = 0 end
    if after ~= l or add == -1 / 0 then l, changed = after, true end
  end
  if changed then
    if l > 0 then
      local low = l % 1e9
      local n, s = now_n + low, now_s + (l - low) / 1e9
      if n >= 1e9 then n, s = n - 1e9, s + 1 end
      local value, ttl = format('%d%09d', s, n), format('%d', (l + 1999999) / 1e6)
      if corrupt == 0 then
        -- What was there before is cheaper to be told than that all went well.
        call('SET', key, value, 'PX', ttl, 'GET')
      else
        call('SET', key, value, 'PX', ttl)
      end
    else
      call('DEL', key)
    end
  end
  if corrupt == 0 then return time[1] .. ' ' .. time[2] .. ' ' .. mask .. ' ' .. v end
  return {time[1] * 1e6 + time[2], mask, '', corrupt, 1}
end

