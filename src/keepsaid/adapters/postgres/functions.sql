-- What SQLite has built in and PostgreSQL has not. The planner writes those of one value into the statement that calls
-- them; those of many values are calls, so dialect.py writes a list that is bound to a mark without them.

CREATE FUNCTION carray(bigint[]) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION carray(text[]) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION carray(bytea[]) RETURNS TABLE (value bytea) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION json_numbers(text) RETURNS TABLE (value bigint, rowid bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT value::bigint, n FROM jsonb_array_elements_text($1::jsonb) WITH ORDINALITY AS one (value, n) $$;

CREATE FUNCTION json_texts(text) RETURNS TABLE (value text, rowid bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT value, n FROM jsonb_array_elements_text($1::jsonb) WITH ORDINALITY AS one (value, n) $$;

CREATE FUNCTION json_each(text) RETURNS TABLE (value jsonb, key bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT value, n - 1 FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS one (value, n) $$;

CREATE FUNCTION json_each(jsonb) RETURNS TABLE (value jsonb, key bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT value, n - 1 FROM jsonb_array_elements($1) WITH ORDINALITY AS one (value, n) $$;

CREATE FUNCTION json_each(text, text) RETURNS TABLE (value jsonb, key bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$
  SELECT value, n - 1
  FROM jsonb_array_elements(jsonb_path_query_first($1::jsonb, $2::jsonpath)) WITH ORDINALITY AS one (value, n)
$$;

CREATE FUNCTION json_member(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT jsonb_path_query_first($1::jsonb, $2::jsonpath) #>> '{}' $$;

CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_member);

CREATE FUNCTION max_of(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $1 < $2 THEN $2 ELSE $1 END $$;

CREATE FUNCTION min_of(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $2 < $1 THEN $2 ELSE $1 END $$;

CREATE FUNCTION max_of(double precision, double precision) RETURNS double precision LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $1 < $2 THEN $2 ELSE $1 END $$;

CREATE FUNCTION min_of(double precision, double precision) RETURNS double precision LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $2 < $1 THEN $2 ELSE $1 END $$;

CREATE FUNCTION substr(text, bigint, bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT pg_catalog.substr($1, $2::int, $3::int) $$;

CREATE FUNCTION strpos(bytea, bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT position($2 IN $1)::bigint $$;

CREATE FUNCTION randomblob(bigint) RETURNS bytea LANGUAGE sql VOLATILE
AS $$ SELECT uuid_send(gen_random_uuid()) $$;

CREATE FUNCTION substr(bytea, bigint, bigint) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT pg_catalog.substr($1, $2::int, $3::int) $$;

CREATE FUNCTION json_parsed(text) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1::jsonb $$;

CREATE FUNCTION json_set(text, text, jsonb) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT jsonb_set($1::jsonb, string_to_array(substr($2, 3), '.'), $3)::text $$;

CREATE FUNCTION json_remove(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT ($1::jsonb #- string_to_array(substr($2, 3), '.'))::text $$;

CREATE FUNCTION json_texts(jsonb) RETURNS TABLE (value text, rowid bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT value, n FROM jsonb_array_elements_text($1) WITH ORDINALITY AS one (value, n) $$;
