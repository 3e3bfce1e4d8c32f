-- name: as_bytes
WITH given (/*names*/) AS (/*query*/) SELECT /*columns*/ FROM given

-- name: column
iif(typeof(/*name*/) = 'text', CAST(/*name*/ AS BLOB), /*name*/), typeof(/*name*/) = 'text'
