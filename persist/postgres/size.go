package postgres

import "fmt"

// Size implements sqljournal.Dialect: it returns the query for the bytes of the tables with their indexes. It needs no right but USAGE on the schema.
func (d *dialect) Size() string {
	return fmt.Sprintf("SELECT pg_total_relation_size('%s'::regclass) + pg_total_relation_size('%s'::regclass)", d.table, d.fact)
}
