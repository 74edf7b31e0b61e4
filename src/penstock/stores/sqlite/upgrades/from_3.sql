-- Schema 4: what handlers ask for.
--
-- handlers.defaults  a HandlerDefaults (msgpack). Of handlers from before it isn't known: x'80' asks for nothing.
ALTER TABLE handlers ADD COLUMN defaults BLOB NOT NULL DEFAULT x'80';
