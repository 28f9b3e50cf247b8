package postgres

import "github.com/oncehttp/oncehttp/persist/internal/sqljournal"

// CountQuery is the query of Count.
func (o Options) CountQuery() string { return sqljournal.CountQuery(o.dialect()) }
