-- What SQLite has built in and PostgreSQL has not. The planner writes each into the statement that calls it.

CREATE FUNCTION carray(bigint[]) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION carray(text[]) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION carray(bytea[]) RETURNS TABLE (value bytea) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT unnest($1) $$;

CREATE FUNCTION json_each(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT ROWS 10
AS $$ SELECT jsonb_array_elements_text($1::jsonb) $$;

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
