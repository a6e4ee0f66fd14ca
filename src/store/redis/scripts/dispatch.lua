-- Group after group, each seeing what those before it did; then everything that changed is written.
--
--   group   action (0: decide, 1: decide and keep a record, 2: settle, 3: claim), how many charges,
--           key of the record, its time to live, the text it begins with (3: how to settle it)
--   charge  how many numbers it has, algorithm, key, whether it is a shadow, its text for the
--           record, parameters
local algorithms = {
  bucket,
  fixed_window,
  function(k, j, phase) return fixed_window(k, j, phase, true) end,
  sliding_window,
  strict_window,
  event_log,
}
local masks, records = {}, {}
local i, last = a[1], #a
while i < last do
  local action, charges, record = a[i], a[i + 1], a[i + 2]
  local ok = true
  if action == 2 then
    -- Whoever removes the record settles it.
    ok = call('DEL', KEYS[record]) == 1
  elseif action == 3 then
    -- Whoever comes first says how the parts of a reservation in several slots are settled.
    local text = was[record]
    ok = text and sub(text, 1, 3) == 'W2\0' and sub(text, 12, 13) ~= '\0\0'
    if ok then
      was[record] = sub(text, 1, 2) .. ARGV[a[i + 4]] .. sub(text, 12)
      call('SETRANGE', KEYS[record], 2, ARGV[a[i + 4]])
    end
  end
  local first, j = i + 5, i + 5
  local passed = {}
  for c = 1, charges do
    passed[c] = algorithms[a[j + 1]](a[j + 2], j + 5, 0)
    if not passed[c] and a[j + 3] == 0 then ok = false end
    j = j + a[j]
  end
  local stop = j
  local parts = {}
  j = first
  for c = 1, charges do
    local takes = ok and passed[c]
    local xs, xn, rs, rn = algorithms[a[j + 1]](a[j + 2], j + 5, takes and 1 or 2)
    if takes and a[j + 4] > 0 then
      parts[#parts + 1] = ARGV[a[j + 4]] .. struct.pack('<dddd', xs, xn, rs, rn)
    end
    j = j + a[j]
  end
  if ok then
    mask = mask + weight
    if action == 1 then
      records[#records + 1] =
        {KEYS[record], ARGV[a[i + 4]] .. table.concat(parts), format('%.0f', a[i + 3])}
    end
  end
  weight = weight + weight
  if weight == 70368744177664 then
    masks[#masks + 1] = mask
    mask, weight = 0, 1
  end
  i = stop
end
masks[#masks + 1] = mask

for _, it in pairs(write) do it() end
for _, it in ipairs(records) do call('SET', it[1], it[2], 'PX', it[3]) end

local answer = {time[1] * 1e6 + time[2], unpack(masks)}
local n = #answer
for k = 1, plain do answer[n + k] = was[k] end
n = n + plain
for c = 1, #seen do answer[n + c] = seen[c] end
n = n + #seen
if corrupt > 0 then
  answer[n + 1] = corrupt
  if not_ours then
    for c = 1, #not_ours do answer[n + 1 + c] = not_ours[c] end
  end
end
return answer
