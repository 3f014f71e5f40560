-- What is known of a message besides its payload: token, failures, crashes, the last token that
-- was settled, the worker. A message that was never delivered has none.
local function mq_meta(text)
  if not text then
    return '0', 0, 0, '0', ''
  end
  local token, failures, crashes, last, worker =
    string.match(text, '^(%d+):(%d+):(%d+):(%d+):(.*)$')
  return token or '0', tonumber(failures) or 0, tonumber(crashes) or 0, last or '0', worker or ''
end
