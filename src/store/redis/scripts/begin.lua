-- State of rate limits. Decides groups of charges, each all or nothing, by this server's clock.
--
--   KEYS     plain ones first (one MGET reads them all), then logs, then records to be written
--   ARGV[1]  the form of ARGV[2] for struct.unpack
--   ARGV[2]  numbers: where the groups begin, how many keys are plain, whether all charges are
--            levels of short buckets; then what the parts below say
--   ARGV[3+] texts that records are made of
--
-- One charge on one key may come in another form: see one_bucket.lua.
--
-- The answer: the time in microseconds since 1970, verdicts as bits, 46 to a number, the plain values
-- as they were before, and what the charges on logs saw; then, if some values were not ours, how
-- many, and which of the plain ones. Where all went well with short buckets, one text with blanks in
-- between instead (the time as TIME has it): a table costs more than all that is in it.
--
-- Time is in seconds and nanoseconds since 2025, because numbers here are exact up to 2^53 only.
-- Whoever calls has worked out every product, so that here things are added and compared.
local call, format, sub, find = redis.call, string.format, string.sub, string.find
local time = call('TIME')
local now_s, now_n = time[1] - 1735689600, time[2] * 1000
if now_s < 0 then now_s, now_n = 0, 0 end
