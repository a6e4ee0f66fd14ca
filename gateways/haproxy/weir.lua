-- Asks Weir about a request (HAProxy 2.6 and later). A request that may not pass gets Weir's answer
-- as it is. Otherwise txn.weir is "passed" or, if there was no answer, "gone".

-- What is passed on to the client, and the variable that keeps it for answers of the backend.
local told_headers = {
  ["ratelimit"] = "txn.weir_ratelimit",
  ["ratelimit-policy"] = "txn.weir_ratelimit_policy",
  ["x-ratelimit-limit"] = "txn.weir_limit",
  ["x-ratelimit-remaining"] = "txn.weir_remaining",
  ["x-ratelimit-reset"] = "txn.weir_reset",
}
local denial_headers = { "retry-after", "content-type", "cache-control", "x-weir-reason" }

local function deny(txn, told)
  local reply = txn:reply({ status = told.status })
  for _, name in ipairs(denial_headers) do
    local values = told.headers[name]
    if values then
      reply:add_header(name, values[0])
    end
  end
  reply:set_body(told.body)
  txn:done(reply)
end

core.register_action("weir", { "http-req" }, function(txn)
  -- Nothing that the client sent but what is named here, so nothing can be forged.
  local told = core.httpclient():get({
    url = "http://weir/v1/auth",
    dst = "abns@weir",
    timeout = 2000,
    headers = {
      ["x-forwarded-method"] = { txn.sf:method() },
      ["x-forwarded-uri"] = { txn.sf:pathq() },
      ["x-forwarded-host"] = { txn.sf:req_hdr("host") },
      ["x-forwarded-for"] = { txn.sf:src() },
      ["x-user-id"] = { txn:get_var("txn.user") or "" },
      ["user-agent"] = { txn.sf:req_hdr("user-agent") },
      ["cookie"] = { txn.sf:req_hdr("cookie") },
      ["accept"] = { txn.sf:req_hdr("accept") },
      -- ["x-weir-token"] = { "the token of the listener" }, -- with a token
    },
  })
  local status = told.status or 0
  if status == 0 or (status >= 500 and not told.headers["x-weir-reason"]) then
    txn:set_var("txn.weir", "gone")
    return
  end
  for name, variable in pairs(told_headers) do
    local values = told.headers[name]
    if values then
      txn:set_var(variable, values[0])
    end
  end
  if status ~= 200 then
    deny(txn, told)
    return
  end
  txn:set_var("txn.weir", "passed")
end)
