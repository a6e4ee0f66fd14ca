-- What all that count units have in common.
--
--   parameters  verb, cost, reserved, receipt (two numbers), capacity, how much must fit,
--               window (two numbers), family; then what each kind adds
local function fits(j, used)
  if a[j] > 1 then return true end
  local wanted = a[j + 6]
  return wanted <= a[j + 5] and used <= a[j + 5] - wanted
end

local function changes(j)
  local verb = a[j]
  return verb > 1 or (verb == 0 and a[j + 1] ~= 0)
end

-- The count under this limit of what was counted under another: of another family, because the
-- policy has changed.
local function carried(count, j, limit, family)
  if family == a[j + 9] then return count end
  return in_proportion(count, limit, a[j + 5])
end

