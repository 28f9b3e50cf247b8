package postgres

import "fmt"

// Size implements sqljournal.Dialect. It needs no right but USAGE on the schema.
func (d *dialect) Size() string {
	return fmt.Sprintf("SELECT pg_total_relation_size('%s'::regclass) + pg_total_relation_size('%s'::regclass)", d.table, d.fact)
}
