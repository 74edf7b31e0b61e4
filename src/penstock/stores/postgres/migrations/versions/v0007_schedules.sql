-- Schedules and their slots.
--
-- schedules  `schedule` is a stores.schedules.Schedule (msgpack); a write with another `revision` is refused. The owner of
--            `partition` looks after it.
CREATE TABLE schedules (
  id text COLLATE "C" PRIMARY KEY, partition integer NOT NULL, revision integer NOT NULL, name text COLLATE "C" NOT NULL,
  schedule bytea NOT NULL
);
CREATE UNIQUE INDEX schedule_names ON schedules (name);
CREATE INDEX schedules_of_partition ON schedules (partition);

-- slots  what has become of the slots of schedules; `at` is the moment of the slot.
CREATE TABLE slots (
  at double precision NOT NULL, recorded_at double precision NOT NULL, schedule_id text COLLATE "C" NOT NULL,
  slot text COLLATE "C" NOT NULL, outcome text COLLATE "C" NOT NULL, reason text COLLATE "C",
  execution_id text COLLATE "C", PRIMARY KEY (schedule_id, slot)
);
CREATE INDEX slots_by_time ON slots (schedule_id, at, slot);
CREATE INDEX slots_by_record ON slots (recorded_at);
