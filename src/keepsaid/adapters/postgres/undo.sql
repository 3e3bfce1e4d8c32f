-- What a transaction does to rows while it is recorded; it deletes its lines again before it ends.
CREATE TABLE undo_row (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  place text NOT NULL,
  verb text NOT NULL,
  was jsonb NOT NULL,
  now jsonb NOT NULL
);

CREATE FUNCTION record_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO undo_row (place, verb, was, now) VALUES (TG_TABLE_NAME, TG_OP, to_jsonb(new), '{}');
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO undo_row (place, verb, was, now) VALUES (TG_TABLE_NAME, TG_OP, to_jsonb(old), to_jsonb(new));
  ELSE
    INSERT INTO undo_row (place, verb, was, now) VALUES (TG_TABLE_NAME, TG_OP, to_jsonb(old), '{}');
  END IF;
  RETURN NULL;
END $$;

-- Whose commits were the last: a process that writes after another one reads again what it remembered of rows.
CREATE TABLE writer_place (
  one bigint PRIMARY KEY CHECK (one = 1),
  holder text NOT NULL
);
INSERT INTO writer_place (one, holder) VALUES (1, '');
