-- Claims of partitions. Times are those of the database's clock.

-- claim --
-- Claims a partition. Arguments: partition, holder, server, seconds (after which a silent holder is gone). Result:
-- term, commit number, seconds since a rebuild on another server or null; no row if somebody else has it.
UPDATE partitions SET claim_term = claim_term + 1, holder = %(holder)s, server = %(server)s,
  seen_at = extract(epoch FROM clock_timestamp())
WHERE number = %(partition)s
  AND (server = %(server)s OR holder = %(holder)s
    OR seen_at < extract(epoch FROM clock_timestamp()) - %(seconds)s)
RETURNING claim_term, commit_number,
  CASE WHEN rebuilt_on <> server THEN (extract(epoch FROM clock_timestamp()) - rebuilt_at)::float8 END

-- renew_claim --
-- Renews a claim. Arguments: server, partition, term. Result: one changed row, or none if the term is over.
UPDATE partitions SET seen_at = extract(epoch FROM clock_timestamp()), server = %s
WHERE number = %s AND claim_term = %s

-- release_claim --
-- Releases a claim. Arguments: partition, term.
UPDATE partitions SET seen_at = 0 WHERE number = %s AND claim_term = %s

-- begin_rebuild --
-- Begins a rebuild. Arguments: commit number, partition, term. Result: the new generation; no row if the term is
-- over.
UPDATE partitions SET generation = generation + 1, commit_number = greatest(commit_number, %s),
  rebuilt_at = extract(epoch FROM clock_timestamp()), rebuilt_on = server
WHERE number = %s AND claim_term = %s RETURNING generation
