package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// togetherWait bounds how long a statement for several rows waits for another transaction.
// Whoever is not served then goes on alone, and waits for LockWait.
const togetherWait = 100 * time.Millisecond

// together are the statements for several rows.
type together struct {
	begin  string
	change string
}

// together returns the statements for several rows. Their parameters are arrays, one of each column.
func (o Options) together(d *dialect) together {
	bound := fmt.Sprintf("bound AS MATERIALIZED (SELECT set_config('lock_timeout', '%d', true))", min(o.LockWait, togetherWait).Milliseconds())
	names := sqljournal.ColumnList("v.")
	var set []string
	for _, c := range sqljournal.ChangeColumns()[sqljournal.ChangeCompared:] {
		set = append(set, c.Name+" = v."+c.Name)
	}
	return together{
		begin: fmt.Sprintf("WITH %s INSERT INTO %s (%s) SELECT %s FROM bound, %s ON CONFLICT (id) DO NOTHING RETURNING token, seq",
			bound, d.table, sqljournal.ColumnList(""), strings.Replace(names, "v.seq", "nextval('"+d.sequence+"')", 1), unnest(sqljournal.Columns())),
		change: fmt.Sprintf(`WITH %s UPDATE %s r SET revision = r.revision + 1, %s FROM bound, %s
			WHERE r.id = v.id AND r.revision = v.revision AND r.state < 2 AND (v.seq IS NULL OR r.seq = v.seq)
			AND r.created = v.created AND r.fingerprint = v.fingerprint RETURNING r.token, r.seq`,
			bound, d.table, strings.Join(set, ", "), unnest(sqljournal.ChangeColumns())),
	}
}

// unnest is a table v that has these columns, whose values are parameters: arrays.
func unnest(columns []sqljournal.Column) string {
	var names, parameters []string
	for i, c := range columns {
		kind := "bytea"
		if c.Type == 'i' {
			kind = "bigint"
		}
		names, parameters = append(names, c.Name), append(parameters, fmt.Sprintf("$%d::%s[]", i+1, kind))
	}
	return fmt.Sprintf("unnest(%s) AS v (%s)", strings.Join(parameters, ", "), strings.Join(names, ", "))
}

// arrays are the parameters of unnest.
func arrays(columns []sqljournal.Column, rows []*sqljournal.Row, values func(*sqljournal.Row) []any) []any {
	bytes, numbers := make([][][]byte, len(columns)), make([][]sql.NullInt64, len(columns))
	for _, row := range rows {
		for i, value := range values(row) {
			switch v := value.(type) {
			case []byte:
				bytes[i] = append(bytes[i], v)
			case int64:
				numbers[i] = append(numbers[i], sql.NullInt64{Int64: v, Valid: true})
			case sql.NullInt64:
				numbers[i] = append(numbers[i], v)
			}
		}
	}
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = bytes[i]
		if c.Type == 'i' {
			args[i] = numbers[i]
		}
	}
	return args
}

// BeginAll implements sqljournal.Together.
func (d *dialect) BeginAll(ctx context.Context, conn *sql.Conn, rows []*sqljournal.Row) error {
	seqs, err := written(ctx, conn, d.together.begin, arrays(sqljournal.Columns(), rows, (*sqljournal.Row).Values))
	if err != nil {
		return err
	}
	for _, row := range rows {
		row.Seq = seqs[string(row.Token)]
	}
	return nil
}

// ChangeAll implements sqljournal.Together.
func (d *dialect) ChangeAll(ctx context.Context, conn *sql.Conn, rows []*sqljournal.Row) (tokens [][]byte, err error) {
	changed, err := written(ctx, conn, d.together.change, arrays(sqljournal.ChangeColumns(), rows, (*sqljournal.Row).ChangeValues))
	for token := range changed {
		tokens = append(tokens, []byte(token))
	}
	return tokens, err
}

// written runs a statement that returns token and number of the rows that it has written.
func written(ctx context.Context, conn *sql.Conn, statement string, args []any) (seqs map[string]sql.NullInt64, err error) {
	rows, err := conn.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	seqs = map[string]sql.NullInt64{}
	for rows.Next() {
		var token []byte
		var seq sql.NullInt64
		if err := rows.Scan(&token, &seq); err != nil {
			return nil, err
		}
		seqs[string(token)] = seq
	}
	return seqs, rows.Err()
}
