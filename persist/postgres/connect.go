package postgres

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
)

// connector makes connections with errors of one line, without repetitions. The driver tries an address with TLS and
// without. Each try has a line of its own in the error; mostly the lines are the same.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, &connectError{err}
	}
	return conn, nil
}

// connectError is the error of a failed connection.
type connectError struct{ err error }

func (e *connectError) Unwrap() error { return e.err }

func (e *connectError) Error() string {
	var said []string
	for line := range strings.Lines(e.err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	text := strings.Join(said, "; ")
	return strings.Replace(text, ":; ", ": ", 1) // behind the driver's own first line
}
