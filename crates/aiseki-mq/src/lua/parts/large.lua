-- A field with this value keeps a hash a hash table. A small hash is one packed string that every
-- look-up reads through: with some hundred messages out, that would be most of the work. No message
-- has the field's name, the empty one.
local MQ_LARGE = string.rep('-', 65)
