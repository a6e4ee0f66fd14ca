local a = {struct.unpack(ARGV[1], ARGV[2])}
local plain = a[2]
local was = {}
if plain > 0 then was = call('MGET', unpack(KEYS, 1, plain)) end
local mask, weight = 0, 1
local corrupt, not_ours = 0, nil

