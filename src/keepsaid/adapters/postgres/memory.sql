-- What SQLite has built in for a store of memories: how far the ids of a table have come, and full text.
CREATE VIEW sqlite_sequence AS
SELECT 'memory_piece' AS name, (SELECT max(id) FROM memory_piece) AS seq
UNION ALL
SELECT 'vector', (SELECT max(id) FROM vector);

-- How often a term stands in each column of a piece, and how many tokens the piece has.
CREATE TABLE memory_posting (
  term text COLLATE "C" NOT NULL,
  piece_id bigint NOT NULL,
  tokens integer NOT NULL,
  body integer NOT NULL,
  speaker integer NOT NULL,
  said integer NOT NULL,
  grams integer NOT NULL,
  PRIMARY KEY (term, piece_id) INCLUDE (tokens, body, speaker, said, grams)
);
CREATE INDEX memory_posting_piece ON memory_posting (piece_id);

-- Pieces that came or went since the postings were written; filled and emptied in one transaction.
CREATE TABLE memory_unposted (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  piece_id bigint NOT NULL,
  pieces integer NOT NULL,
  tokens bigint NOT NULL
);

CREATE TABLE memory_size (
  one bigint PRIMARY KEY CHECK (one = 1),
  pieces bigint NOT NULL,
  tokens bigint NOT NULL
);
INSERT INTO memory_size (one, pieces, tokens) VALUES (1, 0, 0);

CREATE FUNCTION post_piece() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO memory_unposted (piece_id, pieces, tokens)
    SELECT old.id, -1, -coalesce(max(posting.tokens), 0) FROM memory_posting AS posting WHERE posting.piece_id = old.id;
    DELETE FROM memory_posting WHERE piece_id = old.id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO memory_unposted (piece_id, pieces, tokens) VALUES (new.id, 1, 0);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER piece_posted AFTER INSERT OR DELETE OR UPDATE OF body, speaker, said, grams ON memory_piece
FOR EACH ROW EXECUTE FUNCTION post_piece();
