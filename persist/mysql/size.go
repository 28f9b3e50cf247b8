package mysql

import "strings"

// Size implements sqljournal.Dialect: it returns the query for the bytes of the tables with their indexes. A role sees only the tables on which it has a right.
// d.prefix is the quoted name of the database and a dot, or empty.
func (d *dialect) Size() string {
	database := "DATABASE()"
	if d.prefix != "" {
		database = "'" + strings.Trim(d.prefix, "`.") + "'"
	}
	return "SELECT CAST(COALESCE(SUM(data_length + index_length), 0) AS SIGNED) FROM information_schema.tables WHERE table_schema = " + database +
		" AND table_name IN ('oncehttp_record', 'oncehttp_used', 'oncehttp_used_until', 'oncehttp_fact')"
}
